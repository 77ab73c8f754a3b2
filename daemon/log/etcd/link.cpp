#include "daemon/log/etcd/link.hpp"

#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <openssl/ssl.h>

namespace resourced::daemon::log::etcd {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

Link::Link(asio::io_context& loop, config::EtcdEndpoint endpoint, std::shared_ptr<asio::ssl::context> tls)
    : endpoint_(std::move(endpoint)), tls_(std::move(tls)), resolver_(loop) {
  if (tls_) {
    secure_ = std::make_unique<asio::ssl::stream<tcp::socket>>(loop, *tls_);
  } else {
    plain_ = std::make_unique<tcp::socket>(loop);
  }
}

void Link::open(Done done) {
  resolver_.async_resolve(
      endpoint_.host, fmt::format("{}", endpoint_.port), tcp::resolver::numeric_service,
      [this, done = std::move(done)](const error_code& error, const tcp::resolver::results_type& addresses) {
        if (error || is_closed_) return done(error ? error : asio::error::operation_aborted);
        connect(addresses, done);
      });
}

void Link::connect(const tcp::resolver::results_type& addresses, Done done) {
  asio::async_connect(socket(), addresses,
                      [this, done = std::move(done)](const error_code& error, const tcp::endpoint&) {
                        if (error || is_closed_) return done(error ? error : asio::error::operation_aborted);
                        error_code ignored;
                        socket().set_option(tcp::no_delay(true), ignored);
                        if (secure_) return greet(done);
                        done({});
                      });
}

void Link::greet(const Done& done) {
  SSL_set_tlsext_host_name(secure_->native_handle(), endpoint_.host.c_str());
  secure_->set_verify_mode(asio::ssl::verify_peer);
  secure_->set_verify_callback(asio::ssl::host_name_verification(endpoint_.host));
  secure_->async_handshake(asio::ssl::stream_base::client, done);
}

void Link::read_some(asio::mutable_buffer bytes, Transferred done) {
  if (secure_) return secure_->async_read_some(bytes, std::move(done));
  plain_->async_read_some(bytes, std::move(done));
}

void Link::write(asio::const_buffer bytes, Transferred done) {
  if (secure_) return asio::async_write(*secure_, bytes, std::move(done));
  asio::async_write(*plain_, bytes, std::move(done));
}

// A handler that waits in the loop has its outcome already.
void Link::close() {
  is_closed_ = true;
  resolver_.cancel();
  error_code ignored;
  socket().close(ignored);
}

}  // namespace resourced::daemon::log::etcd
