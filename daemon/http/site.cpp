#include "daemon/http/site.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/text/base64.hpp"
#include "os/file.hpp"

namespace resourced::daemon::http {
namespace {

namespace asio = boost::asio;
namespace ip = boost::asio::ip;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return result;
}

bool is_port(std::string_view text) {
  constexpr std::size_t max_digits = 5;
  return text.size() <= max_digits &&
         std::ranges::all_of(text, [](char digit) { return digit >= '0' && digit <= '9'; });
}

// Returns the name or address in a Host without its port and brackets; nothing if it is malformed.
std::optional<std::string> without_port(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view rest = host.substr(end + 1);
    if (!rest.empty() && (rest[0] != ':' || !is_port(rest.substr(1)))) return std::nullopt;
    return std::string(host.substr(1, end - 1));
  }
  const std::size_t colon = std::min(host.find(':'), host.size());
  if (colon < host.size() && !is_port(host.substr(colon + 1))) return std::nullopt;
  std::string name = lower(host.substr(0, colon));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

ip::address plain(ip::address address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address;
}

[[noreturn]] void fail(const std::string& path, const boost::system::error_code& error) {
  throw Error(EINVAL, fmt::format("{}: cannot be used for TLS: {}", path, error.message()));
}

bool is_scheme(std::string_view authorization, std::string_view scheme) {
  return authorization.size() > scheme.size() && lower(authorization.substr(0, scheme.size())) == scheme &&
         authorization[scheme.size()] == ' ';
}

}  // namespace

HostNames::HostNames(const std::vector<std::string>& configured) {
  std::array<char, HOST_NAME_MAX + 1> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) == 0) {
    const std::string name = lower(buffer.data());
    if (!name.empty()) names_.insert(name);
    if (const std::string first = name.substr(0, name.find('.')); !first.empty()) names_.insert(first);
  }
  names_.insert("localhost");
  for (const std::string& name : configured) {
    std::string own = lower(name);
    if (own.ends_with('.')) own.pop_back();
    names_.insert(std::move(own));
  }
}

bool HostNames::has(std::string_view host, const std::string& own) const {
  const std::optional<std::string> name = without_port(host);
  if (!name) return false;
  if (names_.contains(*name)) return true;
  boost::system::error_code error;
  const ip::address address = ip::make_address(*name, error);
  if (error) return false;
  if (plain(address).is_loopback()) return true;
  const ip::address connected = ip::make_address(own, error);
  return !error && plain(address) == plain(connected);
}

std::optional<std::string> token_of(std::string_view authorization) {
  const auto after = [authorization](std::string_view scheme) {
    std::string_view rest = authorization.substr(scheme.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  };
  constexpr std::string_view bearer = "bearer";
  constexpr std::string_view basic = "basic";
  if (is_scheme(authorization, bearer) && !after(bearer).empty()) return std::string(after(bearer));
  if (!is_scheme(authorization, basic)) return std::nullopt;
  const auto decoded = text::decode_base64(after(basic));
  if (!decoded) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos || colon + 1 == decoded->size()) return std::nullopt;
  return decoded->substr(colon + 1);
}

std::shared_ptr<asio::ssl::context> load_tls(const std::string& certificate, const std::string& key) {
  using asio::ssl::context;
  // Open the file first: errors of the library do not name a file that cannot be read.
  (void)os::InputFile(certificate);
  os::InputFile(key).require_secret();
  auto tls = std::make_shared<context>(context::tls_server);
  boost::system::error_code error;
  tls->set_options(context::default_workarounds | context::no_sslv2 | context::no_sslv3 | context::no_tlsv1 |
                       context::no_tlsv1_1 | context::no_compression | SSL_OP_NO_RENEGOTIATION,
                   error);
  tls->use_certificate_chain_file(certificate, error);
  if (error) fail(certificate, error);
  // Refuse encrypted keys: otherwise the library would ask for a pass phrase on the terminal, and the daemon
  // would wait.
  bool is_encrypted = false;
  tls->set_password_callback(
      [&is_encrypted](std::size_t /*most*/, context::password_purpose /*purpose*/) {
        is_encrypted = true;
        return std::string();
      },
      error);
  tls->use_private_key_file(key, context::pem, error);
  if (is_encrypted) throw Error(EINVAL, key + ": is encrypted: write it without a pass phrase");
  if (error) fail(key, error);
  if (SSL_CTX_check_private_key(tls->native_handle()) != 1)
    throw Error(EINVAL, fmt::format("{}: is not the key of the certificate in {}", key, certificate));
  SSL_CTX_set_mode(tls->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  ERR_clear_error();
  return tls;
}

}  // namespace resourced::daemon::http
