#include "wire/flooder.hpp"

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <zmq.h>

#include "wire/dealer.hpp"
#include "wire/raw_socket.hpp"

namespace resourced::wire {
namespace {

/// Milliseconds to wait for an event before it checks `stop_` again.
constexpr int moment = 10;
constexpr int burst = 100;

}  // namespace

Flooder::Flooder(const std::string& uri, const Parts& request) {
  thread_ = std::thread([this, uri, request] {
    constexpr int low = 10;
    ::setpriority(PRIO_PROCESS, 0, low);
    if (uri.starts_with("local://")) {
      flood_local(uri, request);
    } else {
      flood_bus(uri, request);
    }
  });
  constexpr std::uint64_t under_way = 1000;
  for (const Deadline deadline; answers_ < under_way && !deadline.passed();) std::this_thread::yield();
}

Flooder::~Flooder() {
  stop_ = true;
  thread_.join();
}

void Flooder::flood_bus(const std::string& uri, const Parts& request) {
  Dealer dealer(uri, {.reconnect_interval = 1});
  while (!stop_) {
    bool full = false;
    for (int i = 0; i < burst && !full; ++i) full = !dealer.try_send(request);
    const std::uint64_t taken = dealer.discard();
    answers_ += taken;
    if (!full || taken != 0) continue;
    zmq_pollitem_t item{dealer.handle(), 0, ZMQ_POLLIN | ZMQ_POLLOUT, 0};
    ::zmq_poll(&item, 1, moment);
  }
}

void Flooder::flood_local(const std::string& uri, const Parts& request) {
  std::string frames;
  for (int i = 0; i < burst; ++i) frames += local_frame(request);
  while (!stop_) {
    try {
      flood_connection(RawSocket(uri), frames);
    } catch (const std::system_error&) {
      // The daemon refuses connections at present: try again.
    }
  }
}

// Floods one connection until the daemon ends it.
void Flooder::flood_connection(const RawSocket& socket, const std::string& frames) {
  std::array<char, 65536> answers;
  std::string_view left;
  while (!stop_) {
    pollfd entry{socket.fd(), POLLIN | POLLOUT, 0};
    ::poll(&entry, 1, moment);
    if ((entry.revents & POLLIN) != 0) {
      const ssize_t size = ::recv(socket.fd(), answers.data(), answers.size(), MSG_DONTWAIT);
      if (size <= 0) return;
      // Count answers: each has the length of the PROTO part and its first two bytes exactly once.
      constexpr std::string_view proto("\x14\x8E\x01", 3);
      const std::string_view all(answers.data(), static_cast<std::size_t>(size));
      for (auto at = all.find(proto); at != all.npos; at = all.find(proto, at + proto.size())) ++answers_;
    }
    if ((entry.revents & POLLOUT) != 0) {
      if (left.empty()) left = frames;
      const ssize_t sent = ::send(socket.fd(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return;
      if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    }
    if ((entry.revents & (POLLERR | POLLHUP)) != 0) return;
  }
}

}  // namespace resourced::wire
