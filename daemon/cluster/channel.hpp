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

namespace resourced::daemon::cluster {

struct HttpRequest {
  std::string target;
  std::string body;
  /// For the header Authorization; empty for none.
  std::string token;
};

struct HttpAnswer {
  /// 0 if there was no answer: `why` says the reason.
  unsigned status = 0;
  std::string body;
  std::string why;
  /// Bytes of the request may have reached the endpoint.
  bool was_sent = false;
};

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

  class Connection;

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace resourced::daemon::cluster
