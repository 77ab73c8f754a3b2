#include "daemon/http/response.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/http/status.hpp"

namespace resourced::daemon::http {
namespace {

// Security fields of all responses, also of those that a proxy or a browser shows instead of a file: no
// scripts of other sites, no display inside other pages, and no referrer to other sites.
constexpr std::string_view security_fields =
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

std::string first_lines(unsigned code) {
  const auto reason = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(code));
  return fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nServer: resourced\r\n{}", code,
                     std::string_view(reason.data(), reason.size()), date(), security_fields);
}

}  // namespace

std::string encode(const Head& head) {
  std::string text = first_lines(head.status);
  if (head.status != Status::not_modified)
    text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", head.content_type, head.size);
  text += head.fields;
  text += head.keeps_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return text;
}

std::string fields_of(const WebFile& file) {
  return fmt::format("ETag: {}\r\nCache-Control: no-cache\r\n", file.entity_tag);
}

bool matches(std::string_view if_none_match, std::string_view entity_tag) {
  while (!if_none_match.empty()) {
    const std::size_t comma = std::min(if_none_match.find(','), if_none_match.size());
    std::string_view tag = if_none_match.substr(0, comma);
    if_none_match.remove_prefix(std::min(comma + 1, if_none_match.size()));
    tag.remove_prefix(std::min(tag.find_first_not_of(" \t"), tag.size()));
    tag = tag.substr(0, tag.find_last_not_of(" \t") + 1);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == "*" || tag == entity_tag) return true;
  }
  return false;
}

Text describe(const Refusal& refusal) {
  Text text{"text/plain; charset=utf-8", refusal.text + "\n", "Cache-Control: no-store\r\n"};
  if (refusal.errnum != 0) {
    const nlohmann::json object = {{"errno", refusal.errnum}, {"text", refusal.text}};
    text.content_type = json_type;
    text.body = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  if (refusal.status == Status::unauthorized)
    text.fields += "WWW-Authenticate: Bearer realm=\"resourced\"\r\n";
  if (refusal.status == Status::method_not_allowed) text.fields += "Allow: GET, HEAD\r\n";
  if (refusal.status == Status::unavailable) text.fields += "Retry-After: 1\r\n";
  return text;
}

unsigned status_of(int errnum) noexcept {
  switch (errnum) {
    case EINVAL:
    case EPROTO:
      return Status::bad_request;
    case EPERM:
    case EACCES:
      return Status::forbidden;
    case ENOENT:
    case ENODATA:
    case ENOSYS:
      return Status::not_found;
    case EMSGSIZE:
      return Status::content_too_large;
    case EAGAIN:
    case EBUSY:
    case EOVERFLOW:
    case ECANCELED:
    // The daemon is a standby, or may know more later.
    case EHOSTUNREACH:
      return Status::unavailable;
    case ETIMEDOUT:
      return Status::timed_out;
    default:
      return Status::internal_error;
  }
}

std::string encode_stream_head() {
  return first_lines(Status::ok) +
         "Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n"
         "Connection: close\r\n\r\n";
}

// Returns the text before an event. `last` is the last key of the payload, so it is searched from the end:
// `,"last":17}`. No text in the payload can look like that, as a quote inside a text has a backslash before
// it.
std::string before_event(std::string_view payload) {
  constexpr std::string_view key = "\"last\":";
  if (!payload.ends_with('}')) return "data: ";
  payload.remove_suffix(1);
  const std::size_t digits = payload.find_last_not_of("0123456789") + 1;
  const std::string_view before = payload.substr(0, digits);
  const bool is_last =
      digits < payload.size() && before.ends_with(key) && before.size() > key.size() &&
      (before[before.size() - key.size() - 1] == ',' || before[before.size() - key.size() - 1] == '{');
  if (!is_last) return "data: ";
  return fmt::format("id: {}\ndata: ", payload.substr(digits));
}

std::string encode_end(int errnum, std::string_view text) {
  const nlohmann::json object = {{"errno", errnum}, {"text", text}};
  return fmt::format("event: end\ndata: {}\n\n",
                     object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace resourced::daemon::http
