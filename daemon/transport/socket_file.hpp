// The file of a Unix socket: a killed daemon leaves it behind, a running one accepts connections on it. Also
// the process at the other end of a connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace resourced::daemon::transport {

enum class SocketFile { none, stale, in_use, foreign };

/// The kind of file at this path: `stale` is a socket without a listener, `foreign` anything but a socket,
/// symbolic links included.
[[nodiscard]] SocketFile look_at_socket(const std::string& path);

/// Makes room for a socket: removes a stale one. Throws Error that names the endpoint: EADDRINUSE if a
/// process listens there, EEXIST for a file that is not a socket, which is left alone.
void clear_socket(const std::string& path, std::string_view endpoint);

/// The file of a socket that listens. Its end removes the file, unless another file is there by then.
class OwnSocketFile {
 public:
  explicit OwnSocketFile(std::string path);
  ~OwnSocketFile();
  OwnSocketFile(const OwnSocketFile&) = delete;
  OwnSocketFile& operator=(const OwnSocketFile&) = delete;
  OwnSocketFile(OwnSocketFile&&) = delete;
  OwnSocketFile& operator=(OwnSocketFile&&) = delete;

 private:
  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

/// File mode and group of a socket, which decide the users that may connect.
struct SocketMode {
  std::uint32_t mode = 0666;
  /// A gid; the group of the daemon if there is none.
  std::optional<std::uint32_t> group;
};

/// Gives a socket its group and mode. Throws Error that names it.
void set_socket_mode(const std::string& path, const SocketMode& mode);

/// The user of the process that has connected.
struct PeerProcess {
  std::uint32_t userid = 0;
  std::uint32_t groupid = 0;
};
/// Nothing if the kernel cannot say.
[[nodiscard]] std::optional<PeerProcess> peer_process(int descriptor);

/// The mode of a ZeroMQ socket: the bits of `mode` for the owner, and for the group only if one is named.
/// libzmq bounds the size of a part of a message and not the number of parts, so every user that may connect
/// can fill the memory.
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
