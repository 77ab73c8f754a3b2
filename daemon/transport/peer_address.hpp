// Who is behind an ipc connection, as libzmq writes it into the property `Peer-Address` of each message: what
// it got from the kernel (SO_PEERCRED) when it took the connection, `HOST:UID:GID:PID`. To ask the kernel by
// the message's file descriptor would be wrong: by the time a message is read, its connection may have ended
// and the descriptor may belong to another user's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace resourced::daemon::transport {

struct IpcPeer {
  std::uint32_t userid = 0;
  std::uint32_t groupid = 0;
  friend bool operator==(const IpcPeer&, const IpcPeer&) = default;
};

/// Nothing if the text is anything else.
[[nodiscard]] std::optional<IpcPeer> parse_ipc_peer(std::string_view peer_address) noexcept;

}  // namespace resourced::daemon::transport
