// The conditions for serving HTTP requests: names of this server, against DNS rebinding, tokens and TLS. A
// reload replaces them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ssl/context.hpp>

#include "daemon/transport/transport.hpp"

namespace resourced::daemon::http {

/// The names by which clients may address this server: localhost, the name of this host with and without its
/// domain, and those that the site names. A page of another site can let its own name resolve to the address
/// of this server and make a browser send requests here, but they carry that name.
class HostNames {
 public:
  explicit HostNames(const std::vector<std::string>& configured);

  /// Whether a Host (RFC 9110, 7.2), a name or address with or without a port, is one of these names, an
  /// address of loopback, or `own`, the address that the client has connected to ("" for a Unix socket).
  [[nodiscard]] bool has(std::string_view host, const std::string& own) const;

 private:
  std::set<std::string, std::less<>> names_;
};

struct Site {
  HostNames names;
  /// Whether clients on TCP must send a token.
  bool needs_token = false;
  /// The TLS context; null for TCP without TLS.
  std::shared_ptr<boost::asio::ssl::context> tls;
};

/// Returns the token in an Authorization field: of the scheme Bearer (RFC 6750), or the password of the
/// scheme Basic (RFC 7617), for programs that support only that. Nothing if there is none.
[[nodiscard]] std::optional<std::string> token_of(std::string_view authorization);

/// Makes a context for a server with this certificate chain and key, both PEM files. Throws Error that names
/// the file: EINVAL if they cannot be used, EACCES for a key that other users can read.
[[nodiscard]] std::shared_ptr<boost::asio::ssl::context> load_tls(const std::string& certificate,
                                                                  const std::string& key);

}  // namespace resourced::daemon::http
