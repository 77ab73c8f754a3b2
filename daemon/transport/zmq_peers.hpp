// Maps ROUTER identities to clients, and finds clients that are gone. The socket monitor reports connections
// by file descriptor; messages have an identity and a descriptor. A descriptor is used again as soon as it is
// closed, so each connection on it is counted: a late message of an ended connection never keeps its client
// alive. Messages of refused and dropped connections are discarded. This class uses no sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/transport/transport.hpp"

namespace resourced::daemon::transport {

/// The peer of an ipc connection, from the property `Peer-Address` that libzmq sets on each message:
/// `HOST:UID:GID:PID`, from the kernel (SO_PEERCRED) when the connection was accepted. Do not ask the kernel
/// by the descriptor of a message: when the message is read, its connection may have ended, and the
/// descriptor may belong to another user.
struct IpcPeer {
  std::uint32_t userid = 0;
  std::uint32_t groupid = 0;
  friend bool operator==(const IpcPeer&, const IpcPeer&) = default;
};

/// Parses `HOST:UID:GID:PID`. Returns nothing for any other text.
[[nodiscard]] std::optional<IpcPeer> parse_ipc_peer(std::string_view peer_address) noexcept;

/// Returns the address of a TCP peer, that of an IPv4 peer in its plain form: a socket for both families has
/// it mapped into IPv6 (::ffff:10.0.0.1).
[[nodiscard]] std::string_view plain_address(std::string_view address) noexcept;

class ZmqPeers {
 public:
  explicit ZmqPeers(ClientIds& ids) : ids_(ids) {}

  /// Handles the monitor's event that a connection was accepted on this descriptor.
  void accepted(int descriptor);
  /// Discards the messages of the connection on this descriptor.
  void refuse(int descriptor);
  /// Handles the end of the connection on this descriptor. Returns the client that had it.
  std::optional<ClientId> disconnected(int descriptor);

  struct Arrival {
    ClientId client{};
    /// The message is of a connection that was refused, dropped or never accepted: discard it. The other
    /// fields have no meaning then.
    bool is_unwanted = false;
    bool is_new = false;
    /// The connection ended before this message was read: handle the client as gone after it.
    bool is_gone = false;
    /// The client that this message shows to be gone.
    std::optional<ClientId> replaced;
  };
  /// Finds or adds the client of a message. All monitor events from before it must have been reported.
  Arrival arrived(std::string_view identity, int descriptor);

  /// Returns whether a message has come by the open connection on this descriptor.
  [[nodiscard]] bool has_spoken(int descriptor) const;

  /// Returns the identity of a client, or null if it is not known (any more).
  [[nodiscard]] const std::string* identity(ClientId client) const;

  /// Forgets a client whose connection has ended.
  void forget(ClientId client);
  /// Forgets a client, and discards further messages of its connection. Returns the descriptor if it is still
  /// open.
  std::optional<int> drop(ClientId client);

 private:
  struct Peer {
    ClientId client{};
    int descriptor = -1;
    std::uint64_t connection = 0;
  };
  struct Descriptor {
    /// Number of connections that have used this descriptor.
    std::uint64_t connection = 0;
    bool open = false;
    /// Discard messages of the connection, also those that are read after its end.
    bool unwanted = false;
    std::optional<ClientId> client;
  };

  ClientId add(std::string_view identity, int descriptor, const Descriptor& state);

  ClientIds& ids_;
  std::unordered_map<std::string, Peer> peers_;
  std::unordered_map<ClientId, std::string> identities_;
  std::unordered_map<int, Descriptor> descriptors_;
};

}  // namespace resourced::daemon::transport
