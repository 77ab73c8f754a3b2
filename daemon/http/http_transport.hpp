// The transport for HTTP: a request is a message of a client, the response its response, and a stream of
// responses server-sent events. The files of daemon/http/web are served from the program. Nothing can be
// changed through HTTP.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "daemon/http/http_connection.hpp"
#include "daemon/http/place.hpp"
#include "daemon/http/site.hpp"
#include "daemon/transport/connection_count.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/transport.hpp"

namespace resourced::daemon::http {

struct HttpOptions {
  Patience patience;
  /// Counts the connections of each uid and address; shared with other endpoints.
  std::shared_ptr<transport::ConnectionCount> connections;
  /// Counts the HTTP connections of each uid and address.
  std::shared_ptr<transport::ConnectionCount> http_connections;
  /// Returns whether a client may read.
  std::function<bool(const transport::Credentials&)> welcomes;
  /// Returns limits.requests-per-second, which applies to one connection.
  std::function<std::size_t()> requests_per_second;
  /// Measures the work of this transport; may be null.
  transport::LoopHolds* holds = nullptr;
};

class HttpServer : public transport::Transport {
 public:
  /// Ends all connections on TCP, because they were made under conditions that are no longer those of the
  /// site.
  virtual void end_connections() = 0;
};

/// Binds a socket. A Unix socket without a listener is replaced. Throws Error that names the address. `site`
/// may change between calls from the loop; it must outlive the transport, as must `listener`.
[[nodiscard]] std::unique_ptr<HttpServer> make_http_transport(boost::asio::io_context& loop,
                                                              const HttpEndpoint& endpoint,
                                                              const HttpOptions& options, const Site& site,
                                                              transport::ClientIds& ids,
                                                              transport::Listener& listener);

}  // namespace resourced::daemon::http
