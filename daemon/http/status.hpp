// The status codes (RFC 9110, 15) that this server sends.
#pragma once

namespace resourced::daemon::http {

struct Status {
  static constexpr unsigned ok = 200;
  static constexpr unsigned not_modified = 304;
  static constexpr unsigned bad_request = 400;
  static constexpr unsigned unauthorized = 401;
  static constexpr unsigned forbidden = 403;
  static constexpr unsigned not_found = 404;
  static constexpr unsigned method_not_allowed = 405;
  static constexpr unsigned request_timeout = 408;
  static constexpr unsigned content_too_large = 413;
  /// The Host is not a name of this server.
  static constexpr unsigned misdirected = 421;
  static constexpr unsigned header_too_large = 431;
  static constexpr unsigned internal_error = 500;
  static constexpr unsigned unavailable = 503;
  static constexpr unsigned timed_out = 504;
  static constexpr unsigned version_not_supported = 505;
};

}  // namespace resourced::daemon::http
