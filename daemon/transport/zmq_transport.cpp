#include "daemon/transport/zmq_transport.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <zmq.hpp>

#include "core/error.hpp"
#include "core/text/z85.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/socket_file.hpp"
#include "daemon/transport/zap.hpp"
#include "daemon/transport/zmq_connections.hpp"
#include "daemon/transport/zmq_peers.hpp"
#include "os/loop.hpp"
#include "proto/key_file.hpp"
#include "proto/zmq_socket.hpp"

namespace resourced::daemon::transport {

using proto::events_of;
using proto::frame_bytes;
using proto::Multipart;
using proto::next_event;
using proto::open_monitor;
using proto::Reading;
using proto::send_now;
using proto::uninterrupted;

namespace {

namespace asio = boost::asio;

// Returns a property of the connection that a message came by (zmq_msg_gets(3)). A client can add some of its
// own, but not replace those that libzmq has set.
std::string_view property(const zmq::message_t& part, const char* name) {
  const char* value = zmq_msg_gets(const_cast<zmq_msg_t*>(part.handle()), name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Throws Error EINVAL if the public key does not belong to the secret key.
void require_pair(const CurveServer& keys) {
  std::array<char, text::z85_key_size + 1> public_key{};
  if (zmq_curve_public(public_key.data(), keys.secret_key.c_str()) != 0 ||
      keys.public_key != public_key.data()) {
    throw Error(EINVAL, "the public and the secret key of the daemon are not a pair");
  }
}

class ZmqTransport final : public Transport {
 public:
  ZmqTransport(asio::io_context& loop, zmq::context_t& context, const std::string& uri,
               const ZmqOptions& options, ClientIds& ids, Listener& listener)
      : loop_(loop),
        listener_(listener),
        peers_(ids),
        router_(context, zmq::socket_type::router),
        monitor_(context, zmq::socket_type::pair),
        router_watch_(loop, router_.get(zmq::sockopt::fd), [this] { work(); }),
        monitor_watch_(loop, monitor_.get(zmq::sockopt::fd), [this] { work(); }),
        connections_(options.connections ? options.connections
                                         : std::make_shared<ConnectionCount>(ConnectionCount::Limits{}),
                     options.heartbeat_timeout),
        try_timer_(loop),
        watch_timer_(loop),
        holds_(options.holds),
        is_ipc_(uri.starts_with("ipc:")),
        max_message_size_(is_ipc_ ? options.max_message_size
                                  : std::min(options.max_message_size, max_guest_message)),
        has_curve_(!is_ipc_ && options.curve.has_value()) {
    configure(options);
    received_.is_encrypted = has_curve_;
    if (has_curve_) require_keys(*options.curve);
    // With this option `*` means both families, or IPv4 alone where the kernel lacks IPv6. An IPv4 endpoint
    // must not have it, as it would be named as a mapped address.
    if (uri.find('[') != std::string::npos || uri.starts_with("tcp://*:"))
      router_.set(zmq::sockopt::ipv6, true);
    watch_connections();
    // Check the path first, as libzmq removes any file there before it binds, even a socket in use.
    if (is_ipc_) clear_socket(uri.substr(std::string_view("ipc://").size()), uri);
    try {
      router_.bind(uri);
    } catch (const zmq::error_t& error) {
      throw Error(error.num(), fmt::format("cannot listen on {}: {}", uri, error.what()));
    }
    endpoint_ = router_.get(zmq::sockopt::last_endpoint);
    // libzmq leaves the file of the socket behind, so this object removes it.
    if (is_ipc_) file_.emplace(endpoint_.substr(std::string_view("ipc://").size()));
    router_watch_.look_again();
    if (!is_ipc_) check_connections();
  }

  ~ZmqTransport() override { *alive_ = false; }

  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;
  ZmqTransport(ZmqTransport&&) = delete;
  ZmqTransport& operator=(ZmqTransport&&) = delete;

  std::string endpoint() const override { return endpoint_; }

  bool is_reachable() const override { return !file_ || file_->is_there(); }

  SendResult send(ClientId client, const proto::Message& message) override {
    const std::string* identity = peers_.identity(client);
    if (identity == nullptr) return SendResult::gone;

    const proto::ProtoPart proto = proto::encode_proto(message);
    const proto::Parts parts = proto::to_parts(message, proto);
    if (const int refusal = send_now(router_, *identity, true); refusal != 0) {
      if (refusal != EAGAIN || (reading_ && has_input())) router_watch_.look_again();
      if (refusal != EAGAIN) return SendResult::gone;
      try_later();
      return SendResult::full;
    }
    router_watch_.look_again();
    // Once ZeroMQ has taken the first part, it takes the others.
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool more = i + 1 < parts.size();
      if (message.payload && parts[i].data() == message.payload->data()) {
        send_shared(message.payload, more);
      } else {
        send_now(router_, parts[i], more);
      }
    }
    return SendResult::sent;
  }

  // ZeroMQ cannot close one peer of a ROUTER, but it notices when the connection is shut down below it.
  void drop(ClientId client) override {
    if (const auto descriptor = peers_.drop(client)) connections_.end(*descriptor);
  }

  void stop_reading() override { reading_ = false; }

  void abandon() override { router_.set(zmq::sockopt::linger, 0); }

  // Returns 0, as the end of the context waits for messages that its sockets have accepted (linger).
  std::size_t unsent() const override { return 0; }

  // Ends connections without a message, as the key of a connection is known only from its messages.
  void drop_silent() override {
    if (!has_curve_) return;
    asio::post(loop_, [this, alive = alive_] {
      if (!*alive) return;
      // By now the monitor has reported each connection whose key was checked before this call.
      read_monitor();
      for (const int descriptor : connections_.open()) {
        if (!peers_.has_spoken(descriptor)) connections_.end(descriptor);
      }
    });
  }

 private:
  void configure(const ZmqOptions& options) {
    router_.set(zmq::sockopt::router_mandatory, true);
    router_.set(zmq::sockopt::linger, 1000);
    router_.set(zmq::sockopt::sndhwm, options.send_hwm);
    router_.set(zmq::sockopt::rcvhwm, options.receive_hwm);
    router_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(max_message_size_));
    router_.set(zmq::sockopt::handshake_ivl, static_cast<int>(options.handshake_timeout.count()));
    watch_peers(options);
  }

  // Detects peers that are gone. The heartbeats of a peer state how long it may be silent
  // (ZMQ_HEARTBEAT_TTL), and libzmq enforces that. For peers that send none, TCP keepalive finds machines
  // that are gone, and check_connections() those that were gone before they had acknowledged everything: the
  // kernel sends them no keepalives. TCP_USER_TIMEOUT would also end the connections of peers that are there
  // and do not read.
  // Heartbeats from this side would only add their cost: libzmq has a timer for each peer that must answer,
  // and searches those of all peers to cancel one, which takes a whole core with ten thousand peers.
  void watch_peers(const ZmqOptions& options) {
    const auto seconds = [](std::chrono::milliseconds time) {
      return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(time).count());
    };
    const int interval = seconds(options.heartbeat_interval);
    const int timeout = seconds(options.heartbeat_timeout);
    constexpr int most_probes = 127;  // the kernel's maximum
    router_.set(zmq::sockopt::tcp_keepalive, 1);
    router_.set(zmq::sockopt::tcp_keepalive_idle, interval);
    router_.set(zmq::sockopt::tcp_keepalive_intvl, interval);
    router_.set(zmq::sockopt::tcp_keepalive_cnt, std::clamp(timeout / interval, 1, most_probes));
  }

  // Makes the socket a CURVE server, which refuses connections in clear and asks the handler about each key.
  void require_keys(const CurveServer& keys) {
    require_pair(keys);
    router_.set(zmq::sockopt::curve_server, true);
    router_.set(zmq::sockopt::curve_secretkey, keys.secret_key);
    router_.set(zmq::sockopt::zap_domain, zap_domain);
  }

  void watch_connections() {
    const std::string name = fmt::format("inproc://monitor-{}", static_cast<const void*>(this));
    const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;
    try {
      open_monitor(router_, monitor_, name, events);
    } catch (const zmq::error_t& error) {
      throw Error(error.num(), fmt::format("cannot watch connections: {}", error.what()));
    }
  }

  // Ends connections that are lost, and those whose message is too long: libzmq bounds each part of a
  // message, but not the number of parts. On ipc the owner and its group are trusted with that.
  void check_connections() {
    constexpr std::chrono::milliseconds between{50};
    const std::uint64_t most = 2 * max_message_size_;
    const std::uint64_t most_in_all = 8 * max_message_size_;
    for (const std::string& line : connections_.check(most, most_in_all))
      listener_.on_malformed(ClientId{}, line);
    watch_timer_.expires_after(between);
    watch_timer_.async_wait([this, alive = alive_](const boost::system::error_code& error) {
      if (!error && *alive) check_connections();
    });
  }

  // Retries a full peer in 10 ms instead of spinning: the edge that tells of room may be consumed already.
  void try_later() {
    constexpr std::chrono::milliseconds pause{10};
    if (std::exchange(trying_later_, true)) return;
    try_timer_.expires_after(pause);
    try_timer_.async_wait([this, alive = alive_](const boost::system::error_code& /*error*/) {
      if (!*alive) return;
      trying_later_ = false;
      work();
    });
  }

  void work() {
    const LoopHold hold(holds_, "reading");
    read_monitor();
    // Look at all peers now: while one has messages, libzmq checks others only once in a hundred messages.
    (void)has_input();
    const Turn turn;
    do {
      if (!reading_ || !read_message()) {
        listener_.on_writable();
        return;
      }
    } while (!turn.is_over());
    router_watch_.look_again();
  }

  // Lets libzmq process the events of all peers. Returns whether a message waits.
  bool has_input() { return (events_of(router_) & ZMQ_POLLIN) != 0; }

  // Handles all waiting events of the monitor.
  void read_monitor() {
    while (const auto event = next_event(monitor_)) {
      const int descriptor = static_cast<int>(event->value);
      if (event->number == ZMQ_EVENT_ACCEPTED) {
        accepted(descriptor);
      } else if (event->number == ZMQ_EVENT_DISCONNECTED) {
        connections_.disconnected(descriptor);
        if (const auto gone = peers_.disconnected(descriptor)) listener_.on_gone(*gone);
      } else if (event->number == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
        handshake_failed(event->value);
      }
    }
    connections_.end_refused();
  }

  void accepted(int descriptor) {
    peers_.accepted(descriptor);
    const ZmqConnections::Admission admission = connections_.accepted(descriptor);
    if (!admission.wanted) peers_.refuse(descriptor);
    if (!admission.refusal.empty()) listener_.on_refused(admission.refusal);
  }

  // Handles a failed handshake, whose event has an error number in place of a descriptor.
  void handshake_failed(std::uint32_t problem) {
    listener_.on_refused(
        problem == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC
            ? "a client that does not have this daemon's public key"
            : fmt::format("a connection with an invalid handshake (ZMTP error {:#x})", problem));
  }

  bool read_message() {
    const Reading reading = receive_now(router_, received_, proto::max_parts + 1);
    if (reading != Reading::message) return reading == Reading::part_of_message;
    // Handle monitor events that are older than this message before a client gets it.
    read_monitor();
    const auto& parts = received_.parts;
    // Read properties from the second part: the identity, which libzmq made itself, may lack them.
    const zmq::message_t& sent = parts.at(1);
    const int descriptor = zmq_msg_get(const_cast<zmq_msg_t*>(sent.handle()), ZMQ_SRCFD);
    if (!is_ipc_) connections_.heard(descriptor, received_.bytes - frame_bytes(parts[0], has_curve_));
    const ZmqPeers::Arrival arrival = peers_.arrived(parts[0].to_string_view(), descriptor);
    if (arrival.is_unwanted) return true;
    if (arrival.replaced) listener_.on_gone(*arrival.replaced);
    if (arrival.is_new) listener_.on_client(*this, arrival.client, credentials_of(sent));
    deliver(arrival.client);
    if (arrival.is_gone) {
      peers_.forget(arrival.client);
      listener_.on_gone(arrival.client);
    }
    return true;
  }

  Credentials credentials_of(const zmq::message_t& part) const {
    Credentials credentials;
    const std::string_view address = property(part, "Peer-Address");
    if (is_ipc_) {
      if (const auto peer = parse_ipc_peer(address)) {
        credentials.userid = peer->userid;
        credentials.groupid = peer->groupid;
      }
      return credentials;
    }
    credentials.address = plain_address(address);
    // Trust the User-Id only with CURVE, where our handler sets it: without, any client can claim one.
    if (has_curve_) credentials.key = property(part, "User-Id");
    return credentials;
  }

  void deliver(ClientId client) {
    std::optional<proto::Message> message;
    try {
      if (received_.too_many) throw Error(EPROTO, "too many parts");
      message = proto::from_parts(views_of(received_, 1));
    } catch (const Error& error) {
      listener_.on_malformed(client, error.what());
      return;
    }
    listener_.on_message(client, std::move(*message));
  }

  // Sends a payload, and shares the bytes of a large one instead of copying, as it may go to many clients.
  void send_shared(const proto::Payload& payload, bool more) {
    constexpr std::size_t worth_sharing = 4096;
    if (payload->size() < worth_sharing) {
      send_now(router_, *payload, more);
      return;
    }
    auto* keep = new proto::Payload(payload);
    const auto release = [](void* /*data*/, void* hint) { delete static_cast<proto::Payload*>(hint); };
    zmq::message_t message(const_cast<char*>(payload->data()), payload->size(), release, keep);
    const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
    uninterrupted([&] { return zmq_msg_send(message.handle(), router_.handle(), flags); });
  }

  asio::io_context& loop_;
  Listener& listener_;
  ZmqPeers peers_;
  zmq::socket_t router_;
  zmq::socket_t monitor_;
  os::Watch router_watch_;
  os::Watch monitor_watch_;
  ZmqConnections connections_;
  asio::steady_timer try_timer_;
  asio::steady_timer watch_timer_;
  bool trying_later_ = false;
  LoopHolds* holds_;
  bool is_ipc_;
  std::uint64_t max_message_size_;
  bool has_curve_;
  std::optional<OwnSocketFile> file_;
  std::string endpoint_;
  Multipart received_;
  bool reading_ = true;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

CurveServer load_curve_server(const std::string& key_file, const ZapHandler& handler) {
  const proto::KeyFile keys = proto::load_key_file(key_file);
  return {keys.public_key, keys.secret_key, handler};
}

std::unique_ptr<Transport> make_zmq_transport(asio::io_context& loop, zmq::context_t& context,
                                              const std::string& uri, const ZmqOptions& options,
                                              ClientIds& ids, Listener& listener) {
  return std::make_unique<ZmqTransport>(loop, context, uri, options, ids, listener);
}

}  // namespace resourced::daemon::transport
