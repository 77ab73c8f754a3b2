// An HTTP request whose answer is a stream of lines without an end, as that of a watch of etcd is.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>

#include "config/cluster.hpp"
#include "daemon/log/etcd/http.hpp"

namespace resourced::daemon::log::etcd {

class LineStream {
 public:
  /// Upper bound of a line, and of the body of a failure. Changes of a second have less than this.
  static constexpr std::size_t most_line_bytes = std::size_t{32} << 10;

  /// Each is called from the loop, and may destroy the stream.
  struct Callbacks {
    /// Lines that have come, each with its end: not more than can be read at once.
    std::function<void(const std::string&)> lines;
    /// Once, at the end: the answer of an endpoint that does not begin the stream, or why it has ended.
    std::function<void(const HttpAnswer&)> ended;
  };
  /// `tls` is null for http endpoints. The first line must come before `timeout`.
  LineStream(boost::asio::io_context& loop, const config::EtcdEndpoint& endpoint,
             std::shared_ptr<boost::asio::ssl::context> tls, const HttpRequest& request,
             std::chrono::milliseconds timeout, Callbacks callbacks);
  /// There are no calls any more.
  ~LineStream();
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;
  LineStream(LineStream&&) = delete;
  LineStream& operator=(LineStream&&) = delete;

 private:
  class Connection;
  std::shared_ptr<Connection> connection_;
};

}  // namespace resourced::daemon::log::etcd
