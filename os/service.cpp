#include "os/service.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "os/file.hpp"
#include "os/thread.hpp"

namespace resourced::os {
namespace {

/// Sends notifications from a thread of its own, as a socket that is not read would block the loop. The
/// thread lives as long as the process, which does not wait for it.
class Notifier {
 public:
  /// Queues a notification. A full queue drops it: while the socket is not read, none would arrive.
  void send(std::string text) {
    // Read the variable on the caller's thread, as the environment may change under another thread.
    const char* socket = std::getenv("NOTIFY_SOCKET");
    if (socket == nullptr) return;
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_waiting) return;
    waiting_.push_back({socket, std::move(text)});
    wake_.notify_one();
    if (!std::exchange(is_running_, true)) start_thread([this] { run(); });
  }

 private:
  static constexpr std::size_t most_waiting = 64;
  struct Notification {
    std::string socket;
    std::string text;
  };

  // Sends without sd_notify(3), which would read the environment. Blocks until the socket has room.
  static void deliver(const Notification& notification) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& path = notification.socket;
    if (path.empty() || path.size() >= sizeof address.sun_path) return;
    std::ranges::copy(path, address.sun_path);
    // A leading '@' stands for an abstract socket.
    if (path.front() == '@') address.sun_path[0] = '\0';
    const Descriptor sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    // Ignore an error: nothing depends on a notification.
    (void)!::sendto(sender.get(), notification.text.data(), notification.text.size(), MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&address), size);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return !waiting_.empty(); });
      const Notification next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      deliver(next);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Notification> waiting_;
  bool is_running_ = false;
};

void send(std::string text) {
  // The notifier is never destroyed, as its thread may still use it when the process ends.
  static auto& notifier = *new Notifier;
  notifier.send(std::move(text));
}

}  // namespace

void notify_ready(const std::string& status) {
  send(status.empty() ? "READY=1" : fmt::format("READY=1\nSTATUS={}", status));
}

void notify_status(const std::string& status) { send("STATUS=" + status); }

void notify_reloading() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto usec = static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", usec));
}

void notify_stopping() { send("STOPPING=1"); }

Watchdog::Watchdog(boost::asio::io_context& loop) : timer_(loop) {
  std::uint64_t timeout = 0;
  if (sd_watchdog_enabled(0, &timeout) <= 0) return;
  interval_ = std::chrono::microseconds(timeout / 2);
  feed();
}

void Watchdog::feed() {
  send("WATCHDOG=1");
  timer_.expires_after(interval_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) feed();
  });
}

}  // namespace resourced::os
