// The bus over a Unix stream socket, as Flux's local connector speaks it (framing: proto/local_frame.hpp).
// The kernel identifies the peer. A closed connection is a client that is gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "daemon/transport/connection_count.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/transport.hpp"

namespace resourced::daemon::transport {

struct LocalOptions {
  /// Maximum size of the owner's messages, in bytes. For other users it is at most max_guest_message, as a
  /// user may have many connections.
  std::size_t max_message_size = std::size_t{64} << 20;
  std::uint32_t owner = 0;
  /// Time limit for the rest of a frame that has begun.
  std::chrono::milliseconds frame_timeout{10000};
  /// Counts the connections of each uid; shared with other endpoints. Null: no limit.
  std::shared_ptr<ConnectionCount> connections = nullptr;
  /// Returns whether a client has any right. A client without rights gets EPERM instead of a welcome.
  std::function<bool(const Credentials&)> welcomes = nullptr;
  /// Measures the work of this transport; may be null.
  LoopHolds* holds = nullptr;
};

/// Binds a socket at a path, and replaces one without a listener. Throws Error that names the endpoint.
std::unique_ptr<Transport> make_local_transport(boost::asio::io_context& loop, const std::string& path,
                                                const LocalOptions& options, ClientIds& ids,
                                                Listener& listener);

}  // namespace resourced::daemon::transport
