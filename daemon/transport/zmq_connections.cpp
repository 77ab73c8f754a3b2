#include "daemon/transport/zmq_connections.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "daemon/transport/socket_file.hpp"
#include "daemon/transport/zmq_peers.hpp"

namespace resourced::daemon::transport {
namespace {

// Returns the inode of a socket, or 0 for a descriptor that is not a socket (any more).
std::uint64_t socket_behind(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return 0;
  return status.st_ino;
}

// Returns the uid of a process on this machine, or the address of another one; "" if the kernel cannot say.
std::string peer_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(descriptor, generic, &size) != 0) return {};
  if (address.ss_family == AF_UNIX) {
    const auto peer = peer_process(descriptor);
    return peer ? fmt::format("uid {}", peer->userid) : "";
  }
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(generic, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return std::string(plain_address(host.data()));
}

// TCP_INFO with fields of Linux that the C library's tcp_info lacks. The kernel's header cannot be included
// together with that of the C library.
struct TcpInfo {
  tcp_info begin;
  std::uint64_t pacing_rate;
  std::uint64_t max_pacing_rate;
  std::uint64_t bytes_acked;
  std::uint64_t bytes_received;
};
static_assert(sizeof(tcp_info) == 104);

}  // namespace

std::optional<TcpState> tcp_state(int descriptor) {
  TcpInfo info{};
  socklen_t size = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < sizeof info)
    return std::nullopt;
  const tcp_info& known = info.begin;
  // Probes are also sent to a peer that is only idle; the first has no answer yet.
  const bool sends_again = (known.tcpi_unacked > 0 && known.tcpi_retransmits > 0) || known.tcpi_probes > 1;
  return TcpState{info.bytes_received, sends_again, std::chrono::milliseconds(known.tcpi_last_ack_recv)};
}

ZmqConnections::Admission ZmqConnections::accepted(int descriptor) {
  forget(descriptor);
  Connection connection{socket_behind(descriptor), peer_of(descriptor)};
  Admission admission;
  if (connection.peer.empty()) {
    // The connection has ended already, or no limit can apply to it.
    admission.wanted = false;
  } else if (!count_->add(connection.peer)) {
    admission = {false, fmt::format("too many connections of {}: it has {}", connection.peer,
                                    count_->of(connection.peer))};
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
  // ZeroMQ's thread may close the descriptor at any time, and the next connection gets it. The inode shows
  // that, except between this comparison and shutdown(): at worst an innocent peer has to reconnect.
  if (socket_behind(descriptor) == found->second.socket) shutdown(descriptor, SHUT_RDWR);
}

void ZmqConnections::heard(int descriptor, std::uint64_t bytes) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return;
  found->second.has_message = true;
  found->second.settled += bytes;
}

// The last acknowledgement alone does not tell: a peer to which nothing was sent for a while has nothing to
// acknowledge, until the first packet that is lost.
bool ZmqConnections::is_lost(Connection& connection, const TcpState& state) const {
  if (!state.sends_again) {
    connection.sends_again_since.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!connection.sends_again_since) connection.sends_again_since = now;
  return state.since_acknowledged > longest_unanswered_ &&
         now - *connection.sends_again_since > longest_unanswered_;
}

void ZmqConnections::measure(int descriptor) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return;
  Connection& connection = found->second;
  const auto state = tcp_state(descriptor);
  if (!state) return;
  if (is_lost(connection, *state)) return end(descriptor);
  const std::uint64_t bytes = state->bytes_received;
  connection.settled = std::min(connection.settled, bytes);
  const std::uint64_t unsettled = bytes - connection.settled;
  connection.pending = unsettled;
  if (!std::exchange(connection.has_message, false)) return;
  // Bytes beyond the messages that were read may belong to messages that wait in libzmq, or to one that does
  // not end: the next measurement tells. A handshake and heartbeats add few bytes, which are settled at once.
  constexpr std::uint64_t most_overhead = 65536;
  connection.pending = 0;
  if (unsettled <= most_overhead) connection.settled = bytes;
}

std::string ZmqConnections::end_as_overlong(int descriptor) {
  Connection& connection = open_.at(descriptor);
  end(descriptor);
  return fmt::format("{} sent {} bytes of an unfinished message", connection.peer,
                     std::exchange(connection.pending, 0));
}

std::vector<std::string> ZmqConnections::check(std::uint64_t most, std::uint64_t most_in_all) {
  // A measurement takes about a microsecond: ten thousand connections are measured within a second, at a
  // hundredth of the loop's time.
  constexpr std::size_t share = 512;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < share && !unmeasured_.empty(); ++i) {
    const int descriptor = unmeasured_.back();
    unmeasured_.pop_back();
    measure(descriptor);
    const auto found = open_.find(descriptor);
    if (found != open_.end() && found->second.pending > most) lines.push_back(end_as_overlong(descriptor));
  }
  if (!unmeasured_.empty()) return lines;
  std::uint64_t all = 0;
  std::vector<std::pair<std::uint64_t, int>> senders;
  for (const auto& [descriptor, connection] : open_) {
    unmeasured_.push_back(descriptor);
    all += connection.pending;
    if (connection.pending > 0) senders.emplace_back(connection.pending, descriptor);
  }
  if (all <= most_in_all) return lines;
  std::ranges::sort(senders, std::greater());
  for (const auto& [pending, descriptor] : senders) {
    if (all <= most_in_all) break;
    all -= pending;
    lines.push_back(end_as_overlong(descriptor));
  }
  return lines;
}

std::vector<int> ZmqConnections::open() const {
  std::vector<int> descriptors;
  descriptors.reserve(open_.size());
  for (const auto& [descriptor, connection] : open_) descriptors.push_back(descriptor);
  return descriptors;
}

void ZmqConnections::forget(int descriptor) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return;
  if (!found->second.peer.empty()) count_->remove(found->second.peer);
  open_.erase(found);
}

}  // namespace resourced::daemon::transport
