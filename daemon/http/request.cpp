#include "daemon/http/request.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include "daemon/http/gzip.hpp"
#include "daemon/http/status.hpp"

namespace resourced::daemon::http {
namespace {

namespace beast = boost::beast::http;
using Parser = beast::request_parser<beast::empty_body>;

// Maximum number of header lines; a browser sends about twenty.
constexpr std::ptrdiff_t most_lines = 64;

Refusal refusal(const boost::system::error_code& error) {
  if (error == beast::error::header_limit)
    return {Status::header_too_large, "the header of the request is longer than 8192 bytes"};
  if (error == beast::error::body_limit) return {Status::content_too_large, "a request has no body here"};
  if (error == beast::error::bad_version)
    return {Status::version_not_supported, "the version is not HTTP/1.0 or 1.1"};
  return {Status::bad_request, "the request is malformed: " + error.message()};
}

std::size_t count(const Parser& parser, beast::field field) { return parser.get().count(field); }

std::string value(const Parser& parser, beast::field field) {
  const auto found = parser.get()[field];
  return {found.data(), found.size()};
}

std::variant<Incomplete, Request, Refusal> read(const Parser& parser) {
  for (const beast::field field :
       {beast::field::host, beast::field::authorization, beast::field::content_length}) {
    if (count(parser, field) > 1)
      return Refusal{Status::bad_request,
                     "a field of the header is there twice: " + std::string(to_string(field))};
  }
  Request request;
  const beast::verb method = parser.get().method();
  constexpr unsigned old_version = 10;
  const bool is_old = parser.get().version() == old_version;
  if (count(parser, beast::field::host) == 1) request.host = value(parser, beast::field::host);
  if (!request.host && !is_old) return Refusal{Status::bad_request, "the header has no Host"};
  if (method != beast::verb::get && method != beast::verb::head)
    return Refusal{Status::method_not_allowed, "only GET and HEAD are served"};
  // Refuse a body; any coding means one, of a length that only its decoder knows.
  if (count(parser, beast::field::transfer_encoding) > 0 || parser.content_length().value_or(0) > 0)
    return Refusal{Status::content_too_large, "a request has no body here"};
  request.is_head = method == beast::verb::head;
  request.keeps_alive = !is_old && parser.keep_alive();
  request.takes_gzip = takes_gzip(value(parser, beast::field::accept_encoding));
  request.target = std::string(parser.get().target());
  request.authorization = value(parser, beast::field::authorization);
  request.if_none_match = value(parser, beast::field::if_none_match);
  const auto last = parser.get()["Last-Event-ID"];
  request.last_event_id = std::string(last);
  return request;
}

}  // namespace

std::variant<Incomplete, Request, Refusal> take_request(std::string& bytes) {
  // Ignore empty lines before a request, for robustness (RFC 9112, 2.2).
  while (bytes.starts_with("\r\n")) bytes.erase(0, 2);
  // Find the end before the header is parsed, so that a client that sends it byte by byte costs little.
  if (bytes.find("\r\n\r\n") == std::string::npos && bytes.size() < max_header) {
    // Refuse TLS, ZMTP and noise at once.
    if (!bytes.empty() && (bytes.front() < 'A' || bytes.front() > 'Z'))
      return Refusal{Status::bad_request, "the request is malformed: bad method"};
    return Incomplete{};
  }
  // Count the lines, because a field costs much more than its bytes.
  const std::size_t end = std::min(bytes.find("\r\n\r\n"), bytes.size());
  if (std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end), '\n') > most_lines)
    return Refusal{Status::header_too_large, "the header has more than 64 lines"};
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(max_header));
  parser.body_limit(0);
  parser.eager(false);
  boost::system::error_code error;
  const std::size_t taken = parser.put(boost::asio::buffer(bytes), error);
  if (error == beast::error::need_more) error = beast::error::header_limit;
  if (error) return refusal(error);
  bytes.erase(0, taken);
  return read(parser);
}

}  // namespace resourced::daemon::http
