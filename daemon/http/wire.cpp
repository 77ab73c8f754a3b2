#include "daemon/http/wire.hpp"

#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace resourced::daemon::http {
namespace {

namespace asio = boost::asio;

class PlainWire final : public Wire {
 public:
  explicit PlainWire(Socket socket) : socket_(std::move(socket)) {}

  void greet(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }
  void read_some(asio::mutable_buffer bytes, Done done) override {
    socket_.async_read_some(bytes, std::move(done));
  }
  void write_some(asio::const_buffer bytes, Done done) override {
    socket_.async_write_some(bytes, std::move(done));
  }
  void end_writing() override {
    boost::system::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  Socket socket_;
};

// A wire with TLS. Each function runs on the thread of TLS, and its handler on the loop.
class TlsWire final : public Wire, public std::enable_shared_from_this<TlsWire> {
 public:
  TlsWire(std::shared_ptr<asio::io_context> context, asio::any_io_executor loop, Socket socket,
          std::shared_ptr<asio::ssl::context> tls)
      : context_(std::move(context)),
        loop_(std::move(loop)),
        tls_(std::move(tls)),
        stream_(std::move(socket), *tls_) {}

  void greet(Done done) override {
    run([done = std::move(done)](TlsWire& self) mutable {
      self.stream_.async_handshake(
          asio::ssl::stream_base::server,
          [to_loop = self.on_loop(std::move(done))](const boost::system::error_code& error) mutable {
            to_loop(error, 0);
          });
    });
  }
  void read_some(asio::mutable_buffer bytes, Done done) override {
    run([bytes, done = std::move(done)](TlsWire& self) mutable {
      self.stream_.async_read_some(bytes, self.on_loop(std::move(done)));
    });
  }
  void write_some(asio::const_buffer bytes, Done done) override {
    run([bytes, done = std::move(done)](TlsWire& self) mutable {
      self.stream_.async_write_some(bytes, self.on_loop(std::move(done)));
    });
  }
  // Sends the alert close_notify. The connection waits for the peer's end, or closes after a while.
  void end_writing() override {
    run([](TlsWire& self) {
      self.stream_.async_shutdown(
          [wire = self.shared_from_this()](const boost::system::error_code& /*error*/) {});
    });
  }
  void close() override {
    run([](TlsWire& self) {
      boost::system::error_code ignored;
      self.stream_.lowest_layer().close(ignored);
    });
  }

 private:
  template <class Work>
  void run(Work work) {
    asio::post(stream_.get_executor(),
               [self = shared_from_this(), work = std::move(work)]() mutable { work(*self); });
  }
  // Returns a handler for the stream, which keeps this object alive.
  [[nodiscard]] Done on_loop(Done done) {
    return [self = shared_from_this(), done = std::move(done)](const boost::system::error_code& error,
                                                               std::size_t size) mutable {
      asio::post(self->loop_, [error, size, done = std::move(done)] { done(error, size); });
    };
  }

  // The context of the socket, which needs it until its end, possibly after the end of the thread.
  std::shared_ptr<asio::io_context> context_;
  asio::any_io_executor loop_;
  std::shared_ptr<asio::ssl::context> tls_;
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::shared_ptr<Wire> plain_wire(Wire::Socket socket) {
  return std::make_shared<PlainWire>(std::move(socket));
}

TlsThread::TlsThread()
    : context_(std::make_shared<asio::io_context>(1)),
      work_(context_->get_executor()),
      thread_([this] { context_->run(); }) {}

// Runs the remaining handlers here, without waiting for any: handlers left in the context would keep their
// wires, and these the context, for ever.
TlsThread::~TlsThread() {
  work_.reset();
  context_->stop();
  thread_.join();
  context_->restart();
  context_->poll();
}

std::shared_ptr<Wire> TlsThread::wire(Wire::Socket socket, std::shared_ptr<asio::ssl::context> tls) {
  const asio::any_io_executor loop = socket.get_executor();
  boost::system::error_code error;
  const auto protocol = socket.local_endpoint(error).protocol();
  Wire::Socket moved(*context_);
  const int descriptor = socket.release(error);
  if (!error) moved.assign(protocol, descriptor, error);
  // Continue after an error: a socket that could not be moved fails at its first use.
  return std::make_shared<TlsWire>(context_, loop, std::move(moved), std::move(tls));
}

}  // namespace resourced::daemon::http
