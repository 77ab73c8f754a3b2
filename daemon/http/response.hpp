// Encodes responses: heads with the fields that all of them have, errors, and server-sent events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/http/request.hpp"
#include "daemon/http/web_files.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::http {

inline constexpr std::string_view json_type = "application/json";
/// The content type of metrics, with the version of Prometheus's text format.
inline constexpr std::string_view metrics_type = "text/plain; version=0.0.4; charset=utf-8";

/// The head of a response with a body of `size` bytes.
struct Head {
  unsigned status = 200;
  std::string_view content_type;
  std::size_t size = 0;
  bool keeps_alive = true;
  /// Further fields, each with its line end.
  std::string fields = "Cache-Control: no-store\r\n";
};
[[nodiscard]] std::string encode(const Head& head);

/// Returns the fields of a file: browsers store it, and ask whether it has changed.
[[nodiscard]] std::string fields_of(const WebFile& file);
/// Whether the field If-None-Match (RFC 9110, 13.1.2) names this entity tag.
[[nodiscard]] bool matches(std::string_view if_none_match, std::string_view entity_tag);

struct Text {
  std::string_view content_type;
  std::string body;
  std::string fields;
};
/// Returns the body of a refusal: `{"errno": N, "text": T}` if the API refuses, otherwise one line of plain
/// text.
[[nodiscard]] Text describe(const Refusal& refusal);

/// Returns the status for an errno of the service.
[[nodiscard]] unsigned status_of(int errnum) noexcept;

/// Returns the head of a stream of events (WHATWG HTML, 9.2), which ends with the connection.
[[nodiscard]] std::string encode_stream_head();
/// Return the text before the payload of an event, and after it. The id is the `last` of a journal's payload:
/// a client that reconnects sends it in Last-Event-ID.
[[nodiscard]] std::string before_event(std::string_view payload);
inline constexpr std::string_view after_event = "\n\n";
/// A comment, by which client and server detect a lost connection.
inline constexpr std::string_view still_alive = ":\n\n";
[[nodiscard]] std::string encode_end(int errnum, std::string_view text);

}  // namespace resourced::daemon::http
