// Reads HTTP/1.1 requests from bytes (RFC 9112), with Boost.Beast's parser. Input is bounded before it is
// stored: a header of at most max_header bytes, and no body.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace resourced::daemon::http {

inline constexpr std::size_t max_header = 8192;

/// A request without its body, which it must not have.
struct Request {
  bool is_head = false;
  /// Whether the connection may have further requests.
  bool keeps_alive = false;
  /// Whether the body of the response may be compressed.
  bool takes_gzip = false;
  std::string target;  ///< the target, unchanged
  std::optional<std::string> host;
  std::string authorization;  ///< "" if the header has no such field
  std::string if_none_match;
  std::string last_event_id;
};

/// A response that reports an error.
struct Refusal {
  unsigned status = 0;
  std::string text;
  /// The errno with which the API refuses a request; 0 elsewhere.
  int errnum = 0;
};

/// Means that the bytes are no complete header yet.
struct Incomplete {};

/// Takes the request at the start of `bytes`, which are removed if they are a complete header. After a
/// Refusal the start of the next request is unknown, so the connection has to end, unless its status is 405.
[[nodiscard]] std::variant<Incomplete, Request, Refusal> take_request(std::string& bytes);

}  // namespace resourced::daemon::http
