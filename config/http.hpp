// The settings of [http]: addresses of the HTTP server, and the conditions under which it may listen there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace resourced::config {

/// Values of [http]. Paths are absolute, as those of Resource.
struct Http {
  std::vector<std::string> listen;  ///< texts of parse_http_address(); empty: no HTTP
  std::string token_file;           ///< "" when not set
  std::string certificate;          ///< a PEM file with the chain; set exactly if `key` is
  std::string key;
  bool insecure = false;           ///< allow addresses beyond loopback without tokens or TLS
  std::vector<std::string> names;  ///< further names of this host in requests
  std::size_t connections = 1024;  ///< in all; a quarter of it, but at least 16, for one address or uid
  friend bool operator==(const Http&, const Http&) = default;
};

/// An address to listen on: a path, or an IP address with a port.
struct HttpAddress {
  std::string path;  ///< path of a Unix socket; "" for TCP
  /// An IPv4 address, an IPv6 address without brackets, or "*" for all of both; "" for a Unix socket.
  std::string address;
  std::uint16_t port = 0;   ///< 0: any free one
  bool is_loopback = true;  ///< true for a Unix socket, too
  friend bool operator==(const HttpAddress&, const HttpAddress&) = default;
};

/// Reads `127.0.0.1:7480`, `[::1]:7480`, `localhost:7480` (127.0.0.1), `*:7480` or `unix:///PATH`. Throws
/// Error EINVAL that quotes the text.
[[nodiscard]] HttpAddress parse_http_address(std::string_view text);

}  // namespace resourced::config
