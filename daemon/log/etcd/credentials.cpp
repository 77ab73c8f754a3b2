#include "daemon/log/etcd/credentials.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "core/error.hpp"
#include "os/file.hpp"

namespace resourced::daemon::log::etcd {
namespace {

// Checks the TLS files, so that a start reports faults in them: libcurl reads them only when it connects.
void check_files(const config::Cluster& files) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> tls(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const auto check = [](int result, const std::string& path) {
    if (result == 1) return;
    const char* const why = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    throw Error(EINVAL,
                fmt::format("{}: cannot be used for TLS: {}", path, why != nullptr ? why : "unknown error"));
  };
  if (!files.ca_file.empty()) {
    (void)os::InputFile(files.ca_file);
    check(SSL_CTX_load_verify_file(tls.get(), files.ca_file.c_str()), files.ca_file);
  }
  if (files.certificate.empty()) return;
  (void)os::InputFile(files.certificate);
  os::InputFile(files.key).require_secret();
  check(SSL_CTX_use_certificate_chain_file(tls.get(), files.certificate.c_str()), files.certificate);
  // Without this callback the library would ask for a pass phrase on the terminal.
  SSL_CTX_set_default_passwd_cb(tls.get(), [](char*, int, int, void*) { return 0; });
  const int has_key = SSL_CTX_use_PrivateKey_file(tls.get(), files.key.c_str(), SSL_FILETYPE_PEM);
  const bool is_other = has_key != 1 && ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
  if (!is_other) check(has_key, files.key);
  ERR_clear_error();
  if (is_other)
    throw Error(EINVAL,
                fmt::format("{}: is not the key of the certificate in {}", files.key, files.certificate));
}

std::string read_password(const std::string& path) {
  if (path.empty()) return {};
  os::InputFile(path).require_secret();
  constexpr std::size_t most = 4096;
  std::string password = os::read_file(path, most);
  if (password.ends_with('\n')) password.pop_back();
  return password;
}

}  // namespace

Credentials read_credentials(const config::Cluster& settings) {
  const bool has_tls = std::ranges::any_of(
      settings.etcd, [](const std::string& text) { return config::parse_etcd_endpoint(text).is_tls; });
  if (has_tls) check_files(settings);
  return {settings.user, read_password(settings.password_file), settings.certificate, settings.key,
          settings.ca_file};
}

}  // namespace resourced::daemon::log::etcd
