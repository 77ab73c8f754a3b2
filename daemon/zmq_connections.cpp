#include "daemon/zmq_connections.hpp"

#include <array>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace resourced::daemon {
namespace {

// 0 for a descriptor that is not a socket (any more).
std::uint64_t socket_behind(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return 0;
  return status.st_ino;
}

// The uid of a process on this machine, or the address of another one; "" if the kernel cannot say.
std::string peer_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(descriptor, generic, &size) != 0) return {};
  if (address.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return {};
    return fmt::format("uid {}", credentials.uid);
  }
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(generic, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return host.data();
}

}  // namespace

ZmqConnections::Admission ZmqConnections::accepted(int descriptor) {
  forget(descriptor);
  Connection connection{socket_behind(descriptor), peer_of(descriptor)};
  Admission admission;
  if (connection.peer.empty()) {
    // It has ended already, or cannot be held to any limit.
    admission.wanted = false;
  } else if (!count_.add(connection.peer)) {
    admission = {
        false, fmt::format("too many connections of {}: it has {}", connection.peer, count_.most_per_peer())};
    connection.peer.clear();
  }
  open_.emplace(descriptor, std::move(connection));
  if (!admission.wanted) refused_.push_back(descriptor);
  return admission;
}

void ZmqConnections::disconnected(int descriptor) { forget(descriptor); }

void ZmqConnections::end_refused() {
  for (const int descriptor : refused_) {
    const auto found = open_.find(descriptor);
    if (found != open_.end() && found->second.peer.empty()) end(descriptor);
  }
  refused_.clear();
}

void ZmqConnections::end(int descriptor) const {
  const auto found = open_.find(descriptor);
  if (found == open_.end() || found->second.socket == 0) return;
  // ZeroMQ's thread may close the descriptor at any time, and the next connection gets it. The socket's inode
  // shows that, but for the moment between the next two lines; at worst an innocent peer has to connect anew.
  if (socket_behind(descriptor) == found->second.socket) shutdown(descriptor, SHUT_RDWR);
}

void ZmqConnections::forget(int descriptor) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return;
  if (!found->second.peer.empty()) count_.remove(found->second.peer);
  open_.erase(found);
}

}  // namespace resourced::daemon
