// A link over a Unix stream socket, see link.hpp.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/link.hpp"
#include "core/error.hpp"
#include "proto/local_frame.hpp"
#include "proto/uri.hpp"

namespace resourced::client {

namespace {

/// Maximum number of bytes that may wait for a daemon that does not read.
constexpr std::size_t full_at = std::size_t{1} << 20;
constexpr std::size_t read_size = std::size_t{64} << 10;
/// Pause between attempts to connect to a socket with a full backlog.
constexpr Milliseconds pause{10};

/// Returns the failure for the first byte that the daemon sends: 0, or the errno of its refusal.
ConnectFailure refusal(int errnum) {
  switch (errnum) {
    case EPERM:
      return ConnectFailure::no_role;
    case EBUSY:
      return ConnectFailure::too_many;
    default:
      return ConnectFailure::bad_handshake;
  }
}

class LocalLink final : public Link::Impl {
 public:
  LocalLink(const std::string& uri, const ConnectionOptions& options, Wakeup& wakeup, Timers& timers)
      : wakeup_(wakeup),
        timers_(timers),
        path_(proto::parse_endpoint(uri, proto::EndpointUse::connect).path),
        socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        decoder_(options.max_message_size) {
    if (socket_ < 0) throw Error(errno, fmt::format("cannot connect to {}: {}", uri, std::strerror(errno)));
    connect();
  }

  ~LocalLink() override {
    if (attempt_) timers_.cancel(*attempt_);
    wakeup_.remove(socket_);
    if (connected_ && !over_) linger();
    ::close(socket_);
  }

  LocalLink(const LocalLink&) = delete;
  LocalLink& operator=(const LocalLink&) = delete;

  bool send(const proto::Message& message) override { return outgoing_.size() < full_at && append(message); }

  bool send_last(const proto::Message& message, Milliseconds) override {
    // The end of the link waits until the bytes have left.
    return append(message);
  }

  std::optional<proto::Message> receive() override {
    work();
    return std::exchange(message_, std::nullopt);
  }

  std::optional<Link::Event> next_event() override {
    work();
    // Report the loss of the connection after its last message.
    if (event_ == Link::Event::lost && message_) return std::nullopt;
    return std::exchange(event_, std::nullopt);
  }

  [[nodiscard]] ConnectFailure failure() const noexcept override { return failure_; }

  bool ready(bool to_send) override {
    work();
    return message_ || event_ || (to_send && !over_ && outgoing_.size() < full_at);
  }

  void set_linger(Milliseconds time) override { linger_ = time; }

 private:
  // Connects. connect(2) succeeds at once, unless the backlog of the daemon's socket is full. No descriptor
  // signals when there is room again, so a timer repeats the attempt.
  void connect() {
    attempt_.reset();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      try {
        // A socket that is not connected would be ready all the time.
        wakeup_.add(socket_);
        return;
      } catch (const Error&) {
        end(ConnectFailure::unreachable);
      }
    } else if (errno == EAGAIN) {
      attempt_ = timers_.add(Clock::now() + pause, [this] { connect(); });
    } else {
      end(ConnectFailure::unreachable);
    }
  }

  bool append(const proto::Message& message) {
    if (over_) return false;
    proto::append_local_frame(outgoing_, message);
    write();
    return true;
  }

  /// Writes waiting bytes, and reads up to the next message or event.
  void work() {
    if (attempt_) return;
    write();
    while (!over_ && !message_ && event_ != Link::Event::connected) {
      try {
        if (const auto parts = decoder_.next()) {
          take(*parts);
        } else if (!read()) {
          return;
        }
      } catch (const Error&) {
        end(ConnectFailure::bad_handshake);  // the bytes that follow cannot be split into frames
      }
    }
  }

  void take(const proto::Parts& parts) {
    try {
      auto message = proto::from_parts(parts);
      if (message.type == proto::MessageType::response) message_ = std::move(message);
    } catch (const Error&) {
      // Drop a frame that is no message of this protocol: it belongs to no request.
    }
  }

  /// Reads bytes. Returns false if there is nothing to read now.
  bool read() {
    std::array<char, read_size> buffer;
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (size < 0 && errno == EINTR) return true;
    if (size <= 0) {
      end(ConnectFailure::ended);
      return false;
    }
    std::string_view bytes(buffer.data(), static_cast<std::size_t>(size));
    if (!connected_) {
      if (bytes.front() != '\0') {
        end(refusal(static_cast<unsigned char>(bytes.front())));
        return false;
      }
      connected_ = true;
      event_ = Link::Event::connected;
      bytes.remove_prefix(1);
    }
    decoder_.feed(bytes);
    return true;
  }

  void write() {
    std::string_view left = outgoing_;
    while (!left.empty() && !over_) {
      const ssize_t size = ::send(socket_, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (size >= 0) {
        left.remove_prefix(static_cast<std::size_t>(size));
      } else if (errno != EINTR) {
        // read() finds the end of the connection, after all that the daemon sent before it.
        break;
      }
    }
    outgoing_.erase(0, outgoing_.size() - left.size());
    const bool waits = !outgoing_.empty() && !over_;
    if (waits != std::exchange(waits_to_write_, waits)) wakeup_.watch_room(socket_, waits);
  }

  void linger() {
    const auto end = Clock::now() + linger_;
    while (!outgoing_.empty()) {
      const auto left = std::chrono::ceil<Milliseconds>(end - Clock::now());
      if (left <= Milliseconds(0)) return;
      pollfd waiting{socket_, POLLOUT, 0};
      constexpr Milliseconds::rep most = 3'600'000;
      (void)::poll(&waiting, 1, static_cast<int>(std::min(left.count(), most)));
      const ssize_t size = ::send(socket_, outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (size < 0 && errno != EINTR && errno != EAGAIN) return;
      if (size > 0) outgoing_.erase(0, static_cast<std::size_t>(size));
    }
  }

  void end(ConnectFailure failure) {
    over_ = true;
    failure_ = failure;
    event_ = connected_ ? Link::Event::lost : Link::Event::failed;
  }

  Wakeup& wakeup_;
  Timers& timers_;
  std::string path_;
  int socket_;
  /// Timer of the next attempt to connect, while the backlog is full.
  std::optional<Timers::Id> attempt_;
  proto::LocalFrameDecoder decoder_;
  std::string outgoing_;
  bool waits_to_write_ = false;
  std::optional<proto::Message> message_;
  std::optional<Link::Event> event_;
  ConnectFailure failure_ = ConnectFailure::unreachable;
  Milliseconds linger_{0};
  bool connected_ = false;
  bool over_ = false;
};

}  // namespace

std::unique_ptr<Link::Impl> make_local_link(const std::string& uri, const ConnectionOptions& options,
                                            Wakeup& wakeup, Timers& timers) {
  return std::make_unique<LocalLink>(uri, options, wakeup, timers);
}

}  // namespace resourced::client
