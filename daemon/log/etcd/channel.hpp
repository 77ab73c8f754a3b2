// HTTP requests to one endpoint of etcd over connections that are used again, with TLS or without.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>

#include "config/cluster.hpp"
#include "daemon/log/etcd/http.hpp"
#include "daemon/log/etcd/line_stream.hpp"

namespace resourced::daemon::log::etcd {

/// The connections to one endpoint. Requests are independent: each takes a connection that is idle, or a new
/// one.
class Channel {
 public:
  using Handler = std::function<void(HttpAnswer)>;

  /// Upper bound of the body of an answer: a page of batches in base64.
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  /// `tls` is null for http endpoints.
  Channel(boost::asio::io_context& loop, config::EtcdEndpoint endpoint,
          std::shared_ptr<boost::asio::ssl::context> tls);
  /// Requests that wait get no answer.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  Channel(Channel&&) = delete;
  Channel& operator=(Channel&&) = delete;

  /// Calls `handler` once, from the loop, at the latest after `timeout`.
  void post(const HttpRequest& request, std::chrono::milliseconds timeout, Handler handler);
  /// Over a connection of its own.
  [[nodiscard]] std::unique_ptr<LineStream> open_stream(const HttpRequest& request,
                                                        std::chrono::milliseconds timeout,
                                                        LineStream::Callbacks callbacks);

  class Connection;

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace resourced::daemon::log::etcd
