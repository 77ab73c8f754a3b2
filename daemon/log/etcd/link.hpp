// A connection to an endpoint of etcd, with TLS or without.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "config/cluster.hpp"

namespace resourced::daemon::log::etcd {

class Link {
 public:
  using Transferred = std::function<void(const boost::system::error_code&, std::size_t)>;

  /// `tls` is null for http endpoints.
  Link(boost::asio::io_context& loop, config::EtcdEndpoint endpoint,
       std::shared_ptr<boost::asio::ssl::context> tls);

  /// Calls `done` once from the loop: HTTP may begin, unless there is an error. `done` must own this object.
  void open(std::function<void(const boost::system::error_code&)> done);
  /// All that is under way ends with an error, for ever.
  void close();
  /// Each calls `done` once from the loop. One read and one write may be under way. The bytes must live until
  /// then, and `done` must own this object. The types of handlers end here, as TLS multiplies what is
  /// compiled for them.
  void read_some(boost::asio::mutable_buffer bytes, Transferred done);
  /// All of them.
  void write(boost::asio::const_buffer bytes, Transferred done);
  [[nodiscard]] boost::asio::ip::tcp::socket& socket() { return secure_ ? secure_->next_layer() : *plain_; }
  [[nodiscard]] const config::EtcdEndpoint& endpoint() const noexcept { return endpoint_; }

 private:
  using Done = std::function<void(const boost::system::error_code&)>;
  void connect(const boost::asio::ip::tcp::resolver::results_type& addresses, Done done);
  void greet(const Done& done);

  config::EtcdEndpoint endpoint_;
  std::shared_ptr<boost::asio::ssl::context> tls_;
  boost::asio::ip::tcp::resolver resolver_;
  bool is_closed_ = false;
  std::unique_ptr<boost::asio::ip::tcp::socket> plain_;
  std::unique_ptr<boost::asio::ssl::stream<boost::asio::ip::tcp::socket>> secure_;
};

}  // namespace resourced::daemon::log::etcd
