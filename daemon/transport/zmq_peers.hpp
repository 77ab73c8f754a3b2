// Which client stands behind a ROUTER identity, and when it is gone. The socket monitor tells of connections
// by file descriptor, messages by identity and descriptor; a descriptor is used again as soon as it is
// closed, so each connection on it counts as a new one, and a message that was still under way when its
// connection ended never keeps a dead client alive. Nor is anything heard of a connection that was refused or
// dropped. No sockets in here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/transport/transport.hpp"

namespace resourced::daemon::transport {

/// Who is behind an ipc connection, as libzmq writes it into the property `Peer-Address` of each message:
/// what it got from the kernel (SO_PEERCRED) when it took the connection, `HOST:UID:GID:PID`. To ask the
/// kernel by the message's file descriptor would be wrong: by the time a message is read, its connection may
/// have ended and the descriptor may belong to another user's.
struct IpcPeer {
  std::uint32_t userid = 0;
  std::uint32_t groupid = 0;
  friend bool operator==(const IpcPeer&, const IpcPeer&) = default;
};

/// Nothing if the text is anything else.
[[nodiscard]] std::optional<IpcPeer> parse_ipc_peer(std::string_view peer_address) noexcept;

class ZmqPeers {
 public:
  explicit ZmqPeers(ClientIds& ids) : ids_(ids) {}

  /// Monitor: a connection was accepted on this descriptor.
  void accepted(int descriptor);
  /// Nothing is to be heard of the connection on this descriptor.
  void refuse(int descriptor);
  /// Monitor: the connection on this descriptor ended. Returns the client that had it.
  std::optional<ClientId> disconnected(int descriptor);

  struct Arrival {
    ClientId client{};
    /// The message is of a connection that was refused or dropped, or that nobody accepted: it is to be
    /// thrown away, and nothing else here means anything.
    bool is_unwanted = false;
    bool is_new = false;
    /// The connection ended before this message was read: the client is to be taken as gone after it.
    bool is_gone = false;
    /// A client that this message shows to be gone.
    std::optional<ClientId> replaced;
  };
  /// A message. All monitor events that were there before it have been reported.
  Arrival arrived(std::string_view identity, int descriptor);

  /// Whether a message has come by the open connection on this descriptor.
  [[nodiscard]] bool has_spoken(int descriptor) const;

  /// Null for a client that is not known (any more).
  [[nodiscard]] const std::string* identity(ClientId client) const;

  /// Forgets a client of a connection that has ended.
  void forget(ClientId client);
  /// Forgets a client, and hears no more of its connection. Returns the descriptor if that is still open.
  std::optional<int> drop(ClientId client);

 private:
  struct Peer {
    ClientId client{};
    int descriptor = -1;
    std::uint64_t connection = 0;
  };
  struct Descriptor {
    /// Counts the connections that have used this descriptor.
    std::uint64_t connection = 0;
    bool open = false;
    /// Its messages are thrown away, those too that are read after its end.
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
