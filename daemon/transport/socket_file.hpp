// The file of a Unix socket, which a killed daemon leaves behind and a running one accepts connections on.
// Also the process at the other end of a connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace resourced::daemon::transport {

enum class SocketFile { none, stale, in_use, foreign };

/// Returns the kind of file at this path: `stale` is a socket without a listener, `foreign` anything but a
/// socket, symbolic links included.
[[nodiscard]] SocketFile look_at_socket(const std::string& path);

/// Makes room for a socket: removes a stale one. Throws Error that names the endpoint: EADDRINUSE if a
/// process listens there, EEXIST for a file that is not a socket, which is left alone.
void clear_socket(const std::string& path, std::string_view endpoint);

/// The file of a listening socket. The destructor removes it, unless another file is there by then.
class OwnSocketFile {
 public:
  explicit OwnSocketFile(std::string path);
  ~OwnSocketFile();
  OwnSocketFile(const OwnSocketFile&) = delete;
  OwnSocketFile& operator=(const OwnSocketFile&) = delete;
  OwnSocketFile(OwnSocketFile&&) = delete;
  OwnSocketFile& operator=(OwnSocketFile&&) = delete;

  /// Returns whether the file is still at its path, so that clients can connect.
  [[nodiscard]] bool is_there() const noexcept;

 private:
  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

/// Returns the Error ENOENT for an endpoint whose socket is not at its path any more. The directory of a
/// service is often root's, so the daemon does not make the socket anew.
[[nodiscard]] Error socket_is_gone(std::string_view endpoint);

/// File mode and group of a socket, which decide the users that may connect.
struct SocketMode {
  std::uint32_t mode = 0666;
  /// The gid of the socket; unset for the group of the daemon.
  std::optional<std::uint32_t> group;
};

/// Sets the group and mode of a socket. Throws Error that names the path.
void set_socket_mode(const std::string& path, const SocketMode& mode);

/// User and primary group of the process at the other end of a connection.
struct PeerProcess {
  std::uint32_t userid = 0;
  std::uint32_t groupid = 0;
};
/// Returns the process that has connected, or nothing if the kernel cannot say.
[[nodiscard]] std::optional<PeerProcess> peer_process(int descriptor);

/// Returns the mode for a ZeroMQ socket: the bits of `mode` for the owner, and for the group only if one is
/// named. libzmq bounds the size of a part of a message and not the number of parts, so every user that may
/// connect can fill the memory.
[[nodiscard]] SocketMode bus_socket_mode(const SocketMode& mode) noexcept;

/// During the lifetime of this object only the daemon's own user may connect to new socket files, so that no
/// other user connects between bind(2) and set_socket_mode().
class PrivateSockets {
 public:
  PrivateSockets() noexcept;
  ~PrivateSockets();
  PrivateSockets(const PrivateSockets&) = delete;
  PrivateSockets& operator=(const PrivateSockets&) = delete;
  PrivateSockets(PrivateSockets&&) = delete;
  PrivateSockets& operator=(PrivateSockets&&) = delete;

 private:
  std::uint32_t before_;
};

}  // namespace resourced::daemon::transport
