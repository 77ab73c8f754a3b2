// A wire carries the bytes of an HTTP connection, with TLS or without. Handlers are called from the loop,
// never from within the function that takes them. TLS works on a thread of its own: any client can start a
// handshake, which takes from a tenth of a millisecond to several.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>

namespace resourced::daemon::http {

class Wire {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Done = std::function<void(const boost::system::error_code&, std::size_t)>;

  virtual ~Wire() = default;
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  Wire(Wire&&) = delete;
  Wire& operator=(Wire&&) = delete;

  /// Makes the handshake; called before everything else. The size passed to the handler is 0.
  virtual void greet(Done done) = 0;
  /// Reads or writes. One read and one write may be under way. The bytes must live until the handler is
  /// called.
  virtual void read_some(boost::asio::mutable_buffer bytes, Done done) = 0;
  virtual void write_some(boost::asio::const_buffer bytes, Done done) = 0;
  /// Ends the stream of the peer after the written bytes. Only a read may be under way.
  virtual void end_writing() = 0;
  /// Ends the operations under way with an error.
  virtual void close() = 0;
};

[[nodiscard]] std::shared_ptr<Wire> plain_wire(Wire::Socket socket);

/// The thread for TLS. All its wires must be closed before its destruction, which runs their remaining
/// handlers; they may be destroyed later.
class TlsThread {
 public:
  TlsThread();
  ~TlsThread();
  TlsThread(const TlsThread&) = delete;
  TlsThread& operator=(const TlsThread&) = delete;
  TlsThread(TlsThread&&) = delete;
  TlsThread& operator=(TlsThread&&) = delete;

  /// Takes over a socket of the loop.
  [[nodiscard]] std::shared_ptr<Wire> wire(Wire::Socket socket,
                                           std::shared_ptr<boost::asio::ssl::context> tls);

 private:
  std::shared_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace resourced::daemon::http
