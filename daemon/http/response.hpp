// Responses as bytes: heads with the fields that all of them have, errors, and server-sent events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/http/request.hpp"
#include "daemon/http/web_files.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::http {

inline constexpr std::string_view json_type = "application/json";
/// The version is that of Prometheus's text format.
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

/// The fields of a file: browsers keep it, and ask whether it has changed.
[[nodiscard]] std::string fields_of(const WebFile& file);
/// Whether If-None-Match (RFC 9110, 13.1.2) names this entity tag.
[[nodiscard]] bool matches(std::string_view if_none_match, std::string_view entity_tag);

struct Text {
  std::string_view content_type;
  std::string body;
  std::string fields;
};
/// `{"errno": N, "text": T}` where the API refuses, otherwise one line of plain text.
[[nodiscard]] Text describe(const Refusal& refusal);

/// The status for an errno of the service.
[[nodiscard]] unsigned status_of(int errnum) noexcept;

/// The head of a stream of events (WHATWG HTML, 9.2). It ends with the connection.
[[nodiscard]] std::string encode_stream_head();
/// What comes before the payload of an event, and after it. The id is the `last` of a journal's payload: a
/// client that reconnects sends it in Last-Event-ID.
[[nodiscard]] std::string before_event(std::string_view payload);
inline constexpr std::string_view after_event = "\n\n";
/// A comment, so that client and server notice a connection that is gone.
inline constexpr std::string_view still_alive = ":\n\n";
[[nodiscard]] std::string encode_end(int errnum, std::string_view text);

}  // namespace resourced::daemon::http
