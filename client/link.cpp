// The ZeroMQ sockets of a link, and the choice of its transport, see link.hpp.
#include "client/link.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <zmq.hpp>

#include "core/error.hpp"
#include "proto/message.hpp"
#include "proto/zmq_socket.hpp"

namespace resourced::client {

using proto::events_of;
using proto::MonitorEvent;
using proto::Multipart;
using proto::open_monitor;
using proto::Reading;
using proto::send_now;
using proto::uninterrupted;

namespace {

/// Maximum number of parts of a message, longer ones are dropped: a response has a delimiter, a topic, a
/// payload and PROTO.
constexpr std::size_t max_parts = 16;
/// Reconnection interval. ZeroMQ reports a failed attempt only by scheduling the next one, which is an hour
/// later here: the link is destroyed long before.
constexpr int never = 3600 * 1000;
constexpr int monitored = ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
                          ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

/// Returns the cause of a failed connection, from an event of the monitor (zmq_socket_monitor(3)).
ConnectFailure failure_of(const MonitorEvent& event) {
  switch (event.number) {
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return ConnectFailure::key_refused;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      return event.value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? ConnectFailure::other_mechanism
                                                                       : ConnectFailure::bad_handshake;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return ConnectFailure::ended;
    default:
      return ConnectFailure::unreachable;
  }
}

int to_int(Milliseconds time) { return static_cast<int>(std::min<Milliseconds::rep>(time.count(), never)); }

}  // namespace

class Link::Context : public zmq::context_t {
 public:
  /// Returns an address for a monitor. That of a former link may be in use for a moment longer than the link,
  /// so each has its own.
  std::string monitor_address() { return fmt::format("inproc://monitor-{}", ++monitors_); }

 private:
  std::uint64_t monitors_ = 0;
};

void Link::ContextDeleter::operator()(Context* context) const noexcept { delete context; }

Link::ContextPtr Link::make_context() { return ContextPtr(new Context()); }

Link::Impl::~Impl() = default;

namespace {

class ZmqLink final : public Link::Impl {
 public:
  ZmqLink(Link::Context& context, const std::string& uri, const ConnectionOptions& options,
          const std::optional<proto::KeyFile>& keys, Wakeup& wakeup, std::optional<Milliseconds> longest) try
      : wakeup_(wakeup),
        socket_(context, zmq::socket_type::dealer),
        monitor_(context, zmq::socket_type::pair) {
    configure(options, keys);
    // Enable IPv6 only for IPv6 addresses: libzmq would reach an IPv4 one by a socket of IPv6, which a system
    // may lack.
    socket_.set(zmq::sockopt::ipv6, uri.find('[') != std::string::npos);
    if (longest) {
      socket_.set(zmq::sockopt::connect_timeout, std::max(to_int(*longest), 1));
      socket_.set(zmq::sockopt::handshake_ivl, std::max(to_int(*longest), 1));
    }
    open_monitor(socket_, monitor_, context.monitor_address(), monitored);
    try {
      if (uninterrupted([&] { return zmq_connect(socket_.handle(), uri.c_str()); }) < 0) throw zmq::error_t();
      wakeup_.add(socket_.get(zmq::sockopt::fd));
      wakeup_.add(monitor_.get(zmq::sockopt::fd));
    } catch (...) {
      stop_monitor();
      throw;
    }
  } catch (const zmq::error_t& error) {
    throw Error(error.num(), fmt::format("cannot connect to {}: {}", uri, error.what()));
  }

  ~ZmqLink() override {
    stop_monitor();
    wakeup_.remove(monitor_.get(zmq::sockopt::fd));
    wakeup_.remove(socket_.get(zmq::sockopt::fd));
  }

  ZmqLink(const ZmqLink&) = delete;
  ZmqLink& operator=(const ZmqLink&) = delete;

  bool send(const proto::Message& message) override {
    const auto proto = proto::encode_proto(message);
    const auto parts = proto::to_parts(message, proto);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool more = i + 1 < parts.size();
      // Only the first part can fail for lack of room. If the connection ends between two parts, the message
      // is lost with the link.
      if (send_now(socket_, parts[i], more) != 0) return false;
    }
    return true;
  }

  bool send_last(const proto::Message& message, Milliseconds longest) override {
    zmq_pollitem_t room{socket_.handle(), 0, ZMQ_POLLOUT, 0};
    (void)zmq_poll(&room, 1, to_int(longest));
    return send(message);
  }

  std::optional<proto::Message> receive() override {
    for (;;) {
      const Reading reading = receive_now(socket_, received_, max_parts);
      if (reading == Reading::nothing) return std::nullopt;
      if (reading == Reading::part_of_message || received_.too_many) continue;
      try {
        auto message = proto::from_parts(views_of(received_, 0));
        if (message.type == proto::MessageType::response) return message;
      } catch (const Error&) {
        continue;  // not a message of this protocol: there is no request that it could belong to
      }
    }
  }

  std::optional<Link::Event> next_event() override {
    while (const auto event = proto::next_event(monitor_)) {
      if (over_) continue;
      if (event->number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        connected_ = true;
        return Link::Event::connected;
      }
      over_ = true;
      failure_ = failure_of(*event);
      return connected_ ? Link::Event::lost : Link::Event::failed;
    }
    return std::nullopt;
  }

  bool ready(bool to_send) override {
    const int wanted = ZMQ_POLLIN | (to_send ? ZMQ_POLLOUT : 0);
    const bool socket_ready = (events_of(socket_) & wanted) != 0;
    const bool monitor_ready = (events_of(monitor_) & ZMQ_POLLIN) != 0;
    return socket_ready || monitor_ready;
  }

  [[nodiscard]] ConnectFailure failure() const noexcept override { return failure_; }

  void set_linger(Milliseconds time) override { socket_.set(zmq::sockopt::linger, to_int(time)); }

 private:
  void configure(const ConnectionOptions& options, const std::optional<proto::KeyFile>& keys) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::reconnect_ivl, never);
    // Turn off the handshake timer of libzmq, because the connection times the attempt: libzmq would report a
    // handshake that takes too long as one that the other end broke off.
    socket_.set(zmq::sockopt::handshake_ivl, 0);
    socket_.set(zmq::sockopt::heartbeat_ivl, to_int(*options.heartbeat_interval));
    socket_.set(zmq::sockopt::heartbeat_timeout, to_int(*options.heartbeat_timeout));
    if (options.heartbeat_ttl) socket_.set(zmq::sockopt::heartbeat_ttl, to_int(*options.heartbeat_timeout));
    socket_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(options.max_message_size));
    if (!keys) return;
    socket_.set(zmq::sockopt::curve_serverkey, keys->server_key);
    socket_.set(zmq::sockopt::curve_publickey, keys->public_key);
    socket_.set(zmq::sockopt::curve_secretkey, keys->secret_key);
  }

  // Must be called while monitor_ exists: otherwise the next event would block the thread of libzmq for ever,
  // and with it every later link.
  void stop_monitor() noexcept { zmq_socket_monitor(socket_.handle(), nullptr, 0); }

  Wakeup& wakeup_;
  zmq::socket_t socket_;
  zmq::socket_t monitor_;
  Multipart received_;
  bool connected_ = false;
  bool over_ = false;
  ConnectFailure failure_ = ConnectFailure::unreachable;
};

std::unique_ptr<Link::Impl> make_impl(Link::Context& context, const std::string& uri,
                                      const ConnectionOptions& options,
                                      const std::optional<proto::KeyFile>& keys, Wakeup& wakeup,
                                      Timers& timers) {
  if (uri.starts_with("local:")) return make_local_link(uri, options, wakeup, timers);
  if (uri.starts_with("tcp:")) return make_tcp_link(context, uri, options, keys, wakeup);
  return make_zmq_link(context, uri, options, keys, wakeup, std::nullopt);
}

}  // namespace

std::unique_ptr<Link::Impl> make_zmq_link(Link::Context& context, const std::string& uri,
                                          const ConnectionOptions& options,
                                          const std::optional<proto::KeyFile>& keys, Wakeup& wakeup,
                                          std::optional<Milliseconds> longest) {
  return std::make_unique<ZmqLink>(context, uri, options, keys, wakeup, longest);
}

Link::Link(Context& context, const std::string& uri, const ConnectionOptions& options,
           const std::optional<proto::KeyFile>& keys, Wakeup& wakeup, Timers& timers)
    : has_heartbeats_(!uri.starts_with("local:")),
      impl_(make_impl(context, uri, options, keys, wakeup, timers)) {}
Link::~Link() = default;

bool Link::send(const proto::Message& message) { return impl_->send(message); }
bool Link::send_last(const proto::Message& message, Milliseconds longest) {
  return impl_->send_last(message, longest);
}
std::optional<proto::Message> Link::receive() { return impl_->receive(); }
std::optional<Link::Event> Link::next_event() { return impl_->next_event(); }
ConnectFailure Link::failure() const noexcept { return impl_->failure(); }
bool Link::ready(bool to_send) { return impl_->ready(to_send); }
void Link::set_linger(Milliseconds time) { impl_->set_linger(time); }

}  // namespace resourced::client
