#include "harness/flooder.hpp"

#include <array>
#include <cerrno>
#include <string_view>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "harness/local_client.hpp"

namespace resourced::e2e {
namespace {

constexpr std::string_view local_scheme = "local://";
/// How long it waits for an event before it looks whether it is still wanted.
constexpr int moment = 10;
constexpr int burst = 100;

int connect_local(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return socket;
  ::close(socket);
  return -1;
}

/// False when nothing more can be sent now.
bool send_request(void* socket, const std::vector<std::string>& request) {
  for (std::size_t i = 0; i < request.size(); ++i) {
    const int more = i + 1 < request.size() ? ZMQ_SNDMORE : 0;
    if (::zmq_send(socket, request[i].data(), request[i].size(), ZMQ_DONTWAIT | more) < 0) return false;
  }
  return true;
}

/// How many whole answers could be taken.
std::uint64_t take_answers(void* socket) {
  std::uint64_t taken = 0;
  std::array<char, 1> start{};
  while (::zmq_recv(socket, start.data(), start.size(), ZMQ_DONTWAIT) >= 0) {
    int more = 0;
    std::size_t size = sizeof(more);
    ::zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
    if (more == 0) ++taken;
  }
  return taken;
}

}  // namespace

Flooder::Flooder(const std::string& uri, const std::vector<std::string>& request) {
  thread_ = std::thread([this, uri, request] {
    constexpr int low = 10;
    ::setpriority(PRIO_PROCESS, 0, low);
    if (uri.starts_with(local_scheme)) {
      flood_local(uri.substr(local_scheme.size()), request);
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

void Flooder::flood_bus(const std::string& uri, const std::vector<std::string>& request) {
  void* const context = ::zmq_ctx_new();
  void* const socket = ::zmq_socket(context, ZMQ_DEALER);
  const int linger = 0;
  ::zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
  const int again_at_once = 1;
  ::zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &again_at_once, sizeof(again_at_once));
  ::zmq_connect(socket, uri.c_str());
  while (!stop_) {
    bool full = false;
    for (int i = 0; i < burst && !full; ++i) full = !send_request(socket, request);
    const std::uint64_t taken = take_answers(socket);
    answers_ += taken;
    if (!full || taken != 0) continue;
    zmq_pollitem_t item{socket, 0, ZMQ_POLLIN | ZMQ_POLLOUT, 0};
    ::zmq_poll(&item, 1, moment);
  }
  ::zmq_close(socket);
  ::zmq_ctx_term(context);
}

void Flooder::flood_local(const std::string& path, const std::vector<std::string>& request) {
  std::string frames;
  for (int i = 0; i < burst; ++i) frames += local_frame(request);
  while (!stop_) {
    const int socket = connect_local(path);
    if (socket < 0) continue;
    flood_connection(socket, frames);
    ::close(socket);
  }
}

// Until the daemon ends it.
void Flooder::flood_connection(int socket, const std::string& frames) {
  std::array<char, 65536> answers;
  std::string_view left;
  while (!stop_) {
    pollfd entry{socket, POLLIN | POLLOUT, 0};
    ::poll(&entry, 1, moment);
    if ((entry.revents & POLLIN) != 0) {
      const ssize_t size = ::recv(socket, answers.data(), answers.size(), MSG_DONTWAIT);
      if (size <= 0) return;
      // Each answer has the two bytes that begin PROTO once, behind the length of that part.
      constexpr std::string_view proto("\x14\x8E\x01", 3);
      const std::string_view all(answers.data(), static_cast<std::size_t>(size));
      for (auto at = all.find(proto); at != all.npos; at = all.find(proto, at + proto.size())) ++answers_;
    }
    if ((entry.revents & POLLOUT) != 0) {
      if (left.empty()) left = frames;
      const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return;
      if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    }
    if ((entry.revents & (POLLERR | POLLHUP)) != 0) return;
  }
}

}  // namespace resourced::e2e
