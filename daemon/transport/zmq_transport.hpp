// The bus over ZeroMQ: one ROUTER socket on one endpoint, and a monitor that reports the end of connections.
// The loop waits for the sockets' descriptors, which are edge-triggered (os/loop.hpp): after every write
// it looks at the socket again, and reads until nothing is left.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "daemon/transport/connection_count.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/transport.hpp"

namespace zmq {
class context_t;
}

namespace resourced::daemon::transport {

class ZapHandler;

/// The keys and the ZAP handler of a tcp:// endpoint that is a CURVE server.
struct CurveServer {
  std::string public_key;  ///< both keys in Z85
  std::string secret_key;
  /// The handler of the same context, which decides which clients may connect. It must outlive the transport:
  /// without a handler libzmq accepts every client.
  std::reference_wrapper<const ZapHandler> handler;
};

/// Reads the daemon's key file. Throws as proto::load_key_file().
[[nodiscard]] CurveServer load_curve_server(const std::string& key_file, const ZapHandler& handler);

struct ZmqOptions {
  int send_hwm = 1000;
  int receive_hwm = 1000;
  std::chrono::milliseconds heartbeat_interval{5000};
  std::chrono::milliseconds heartbeat_timeout{15000};
  /// Bound of a message on ipc. On tcp max_guest_message, if that is less.
  std::size_t max_message_size = std::size_t{64} << 20;
  /// Upper bound of a connection's handshake.
  std::chrono::milliseconds handshake_timeout{30000};
  /// Counts the connections of each uid on ipc and of each address on tcp; shared with other endpoints. Null:
  /// no limit.
  std::shared_ptr<ConnectionCount> connections = nullptr;
  /// For tcp; ignored for ipc.
  std::optional<CurveServer> curve = std::nullopt;
  /// Measures the work of this transport; may be null.
  LoopHolds* holds = nullptr;
};

/// Binds an ipc:// or tcp:// endpoint. Throws Error that names it and the reason; EINVAL for keys that are
/// not a pair. The context must outlive the transport, and the listener too.
std::unique_ptr<Transport> make_zmq_transport(boost::asio::io_context& loop, zmq::context_t& context,
                                              const std::string& uri, const ZmqOptions& options,
                                              ClientIds& ids, Listener& listener);

}  // namespace resourced::daemon::transport
