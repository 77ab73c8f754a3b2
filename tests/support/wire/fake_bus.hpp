// The daemon's end of the bus, for tests of clients: a ROUTER socket that a test operates in the same thread
// as the client under test. Waits have a deadline that only a broken test reaches.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <zmq.h>

#include "wire/codec.hpp"
#include "wire/deadline.hpp"
#include "wire/zmq_socket.hpp"

namespace resourced::wire {

/// Calls wait() of a client (client::Connection) until the condition holds. Throws Timeout.
template <typename Connection>
void pump(Connection& connection, const std::function<bool()>& condition) {
  for (const Deadline deadline; !condition();) {
    if (deadline.passed()) throw Timeout("the client did not do what the test waits for");
    connection.wait(std::chrono::milliseconds(100));
  }
}

/// A request as the ROUTER receives it, the identity first.
struct Frames {
  Parts parts;

  [[nodiscard]] const std::string& identity() const { return parts.at(0); }
  [[nodiscard]] const std::string& topic() const { return parts.at(2); }
  [[nodiscard]] const std::string& proto() const { return parts.back(); }
  /// The payload without its terminating NUL; "" if there is no payload.
  [[nodiscard]] std::string payload() const;
  [[nodiscard]] unsigned flags() const { return static_cast<unsigned char>(proto().at(3)); }
  /// The four bytes of the matchtag.
  [[nodiscard]] std::string matchtag() const { return proto().substr(matchtag_at); }
};

class FakeBus {
 public:
  explicit FakeBus(std::string uri) : uri_(std::move(uri)) { open(); }
  ~FakeBus() { close(); }
  FakeBus(const FakeBus&) = delete;
  FakeBus& operator=(const FakeBus&) = delete;

  void open();
  /// Closes the bus like a daemon that ends: messages that were sent before are still delivered. Afterwards
  /// no client can connect.
  void close();

  /// Returns the next request, while the client works in this thread. Throws Timeout.
  template <typename Connection>
  Frames receive(Connection& connection) {
    for (const Deadline deadline; !deadline.passed();) {
      zmq_pollitem_t items[] = {{router_->handle(), 0, ZMQ_POLLIN, 0},
                                {nullptr, connection.fd(), ZMQ_POLLIN, 0}};
      zmq_poll(items, 2, 100);
      if ((items[0].revents & ZMQ_POLLIN) != 0) return receive();
      if ((items[1].revents & ZMQ_POLLIN) != 0) connection.process();
    }
    throw Timeout("no request came");
  }
  /// Returns the next request of a client in another thread, or of one that has ended. Throws Timeout.
  Frames receive();
  /// Whether no request arrives within this time.
  [[nodiscard]] bool quiet(std::chrono::milliseconds time = std::chrono::milliseconds(0));

  /// Responds with success and this payload; "" means no payload. `stream` sets the streaming flag.
  void respond(const Frames& request, std::string_view payload, bool stream = false);
  void fail(const Frames& request, int errnum, std::string_view text = {});
  void send_parts(const Parts& parts) { router_->send(parts); }

 private:
  std::string uri_;
  ZmqContext context_;
  std::optional<ZmqSocket> router_;
};

}  // namespace resourced::wire
