#include "config/http.hpp"

#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::config {
namespace {

constexpr std::string_view unix_scheme = "unix://";

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error(EINVAL, fmt::format("{} {}", text::quoted(text), why));
}

HttpAddress parse_unix(std::string_view text) {
  HttpAddress address;
  address.path = text.substr(unix_scheme.size());
  if (!address.path.starts_with('/')) refuse(text, "has no absolute path after unix://");
  if (address.path.size() >= sizeof(sockaddr_un::sun_path)) refuse(text, "is too long for a Unix socket");
  return address;
}

bool parse_ip(HttpAddress& address) {
  if (address.address == "*") {
    address.is_loopback = false;
    return true;
  }
  if (in_addr four{}; inet_pton(AF_INET, address.address.c_str(), &four) == 1) {
    constexpr std::uint32_t first_byte = 24;
    address.is_loopback = ntohl(four.s_addr) >> first_byte == IN_LOOPBACKNET;
    return true;
  }
  in6_addr six{};
  if (inet_pton(AF_INET6, address.address.c_str(), &six) != 1) return false;
  address.is_loopback = IN6_IS_ADDR_LOOPBACK(&six);
  return true;
}

}  // namespace

HttpAddress parse_http_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) refuse(text, "has a NUL");
  if (text.starts_with(unix_scheme)) return parse_unix(text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse(text, "has no port: write ADDRESS:PORT or unix:///PATH");
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  HttpAddress address;
  address.address = host == "localhost" ? "127.0.0.1" : host;
  const auto port = text::whole_number<std::uint16_t>(text.substr(colon + 1));
  if (!port) refuse(text, "has no port from 0 to 65535 after its address");
  address.port = *port;
  const bool is_six = address.address.find(':') != std::string::npos;
  if (is_six != has_brackets || !parse_ip(address))
    refuse(text,
           "has no numeric address: write 127.0.0.1:PORT, [::1]:PORT, localhost:PORT, *:PORT or "
           "unix:///PATH");
  return address;
}

}  // namespace resourced::config
