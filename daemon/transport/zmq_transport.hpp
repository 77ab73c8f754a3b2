// The bus over ZeroMQ: one ROUTER socket on one endpoint, and a monitor that reports the end of connections.
// The loop waits for the sockets' descriptors, which are edge-triggered (os/loop.hpp): the transport reads
// until nothing is left, and looks at the socket again after every write.
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
  std::string public_key;  ///< Both keys are in Z85.
  std::string secret_key;
  /// The handler of the same context, which decides which clients may connect. It must outlive the transport:
  /// without a handler libzmq accepts every client.
  std::reference_wrapper<const ZapHandler> handler;
};

/// Reads the daemon's key file. Throws as proto::load_key_file() does.
[[nodiscard]] CurveServer load_curve_server(const std::string& key_file, const ZapHandler& handler);

struct ZmqOptions {
  int send_hwm = 1000;
  int receive_hwm = 1000;
  std::chrono::milliseconds heartbeat_interval{5000};
  std::chrono::milliseconds heartbeat_timeout{15000};
  /// Maximum size of a message on ipc, in bytes. On tcp it is at most max_guest_message.
  std::size_t max_message_size = std::size_t{64} << 20;
  /// Time limit of a connection's handshake.
  std::chrono::milliseconds handshake_timeout{30000};
  /// Counts the connections of each uid on ipc and of each address on tcp; shared with other endpoints. Null:
  /// no limit.
  std::shared_ptr<ConnectionCount> connections = nullptr;
  /// The keys of a tcp endpoint; ignored for ipc.
  std::optional<CurveServer> curve = std::nullopt;
  /// Measures the work of this transport; may be null.
  LoopHolds* holds = nullptr;
};

/// Binds an ipc:// or tcp:// endpoint. Throws Error that names the endpoint and the reason; EINVAL for keys
/// that are not a pair. The context and the listener must outlive the transport.
std::unique_ptr<Transport> make_zmq_transport(boost::asio::io_context& loop, zmq::context_t& context,
                                              const std::string& uri, const ZmqOptions& options,
                                              ClientIds& ids, Listener& listener);

}  // namespace resourced::daemon::transport
