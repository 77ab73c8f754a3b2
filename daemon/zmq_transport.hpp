// The bus over ZeroMQ: one ROUTER socket on one endpoint, and a monitor that says when a connection is gone.
// Asio waits on the sockets' descriptors, which are edge-triggered: after every read and every write the
// socket's events are looked at again until nothing is left.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "daemon/transport.hpp"

namespace zmq {
class context_t;
}

namespace resourced::daemon {

struct ZmqOptions {
  int send_hwm = 1000;
  int receive_hwm = 1000;
  std::chrono::milliseconds heartbeat_interval{5000};
  std::chrono::milliseconds heartbeat_timeout{15000};
  std::size_t max_message_size = std::size_t{64} << 20;
};

/// Binds an ipc:// or tcp:// endpoint. Throws Error that names it and why it cannot be had.
/// The context must outlive the transport, and the listener too.
std::unique_ptr<Transport> make_zmq_transport(boost::asio::io_context& loop, zmq::context_t& context,
                                              const std::string& uri, const ZmqOptions& options,
                                              ClientIds& ids, Listener& listener);

}  // namespace resourced::daemon
