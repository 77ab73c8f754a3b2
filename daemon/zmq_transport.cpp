#include "daemon/zmq_transport.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <zmq.hpp>

#include "core/error.hpp"
#include "daemon/socket_file.hpp"
#include "daemon/zmq_peers.hpp"

namespace resourced::daemon {
namespace {

namespace asio = boost::asio;

// How many messages one turn of the loop takes from one socket before others have theirs.
constexpr int messages_per_turn = 128;

// A message of many parts ends up in one of these; what lies beyond the last is read and thrown away.
struct Multipart {
  std::vector<zmq::message_t> parts;
  bool too_many = false;
};

// Reads without waiting; false if there is nothing. A signal (SIGHUP reloads) may interrupt ZeroMQ even then.
bool receive_now(zmq::socket_t& socket, zmq::message_t& part) {
  while (zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// The uid behind an ipc connection, straight from the kernel.
std::uint32_t peer_userid(int descriptor) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return proto::userid_unknown;
  return credentials.uid;
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
        router_ready_(loop),
        monitor_ready_(loop),
        is_ipc_(uri.starts_with("ipc:")) {
    configure(options);
    // Only where an IPv6 address is asked for: with it, IPv4 endpoints would be named as mapped addresses.
    if (uri.find('[') != std::string::npos) router_.set(zmq::sockopt::ipv6, true);
    watch_connections();
    // ZeroMQ takes the place of a socket file whether anybody serves on it or not.
    if (is_ipc_ && look_at_socket(uri.substr(std::string_view("ipc://").size())) == SocketFile::in_use)
      throw Error(EADDRINUSE, fmt::format("cannot listen on {}: in use", uri));
    try {
      router_.bind(uri);
    } catch (const zmq::error_t& error) {
      throw Error(error.num(), fmt::format("cannot listen on {}: {}", uri, error.what()));
    }
    endpoint_ = router_.get(zmq::sockopt::last_endpoint);
    router_ready_.assign(router_.get(zmq::sockopt::fd));
    monitor_ready_.assign(monitor_.get(zmq::sockopt::fd));
    wait(router_ready_);
    wait(monitor_ready_);
    look_again();
  }

  ~ZmqTransport() override {
    // The descriptors belong to ZeroMQ.
    router_ready_.release();
    monitor_ready_.release();
    *alive_ = false;
  }

  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;
  ZmqTransport(ZmqTransport&&) = delete;
  ZmqTransport& operator=(ZmqTransport&&) = delete;

  std::string endpoint() const override { return endpoint_; }

  SendResult send(ClientId client, const proto::Message& message) override {
    const std::string* identity = peers_.identity(client);
    if (identity == nullptr) return SendResult::gone;
    look_again();

    const proto::ProtoPart proto = proto::encode_proto(message);
    const proto::Parts parts = proto::to_parts(message, proto);
    if (const auto refused = send_part(*identity, true)) {
      return *refused == EAGAIN ? SendResult::full : SendResult::gone;
    }
    // Once the first part is taken, ZeroMQ takes the others.
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool more = i + 1 < parts.size();
      if (message.payload && parts[i].data() == message.payload->data()) {
        send_shared(message.payload, more);
      } else {
        send_part(parts[i], more);
      }
    }
    return SendResult::sent;
  }

  void drop(ClientId client) override { peers_.forget(client); }

  void stop_reading() override { reading_ = false; }

 private:
  void configure(const ZmqOptions& options) {
    router_.set(zmq::sockopt::router_mandatory, true);
    router_.set(zmq::sockopt::linger, 1000);
    router_.set(zmq::sockopt::sndhwm, options.send_hwm);
    router_.set(zmq::sockopt::rcvhwm, options.receive_hwm);
    router_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(options.max_message_size));
    router_.set(zmq::sockopt::heartbeat_ivl, static_cast<int>(options.heartbeat_interval.count()));
    router_.set(zmq::sockopt::heartbeat_timeout, static_cast<int>(options.heartbeat_timeout.count()));
    router_.set(zmq::sockopt::heartbeat_ttl, static_cast<int>(options.heartbeat_timeout.count()));
  }

  void watch_connections() {
    const std::string name = fmt::format("inproc://monitor-{}", static_cast<const void*>(this));
    const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;
    if (zmq_socket_monitor(router_.handle(), name.c_str(), events) != 0) {
      throw Error(errno, fmt::format("cannot watch connections: {}", zmq_strerror(errno)));
    }
    monitor_.set(zmq::sockopt::linger, 0);
    monitor_.connect(name);
  }

  void wait(asio::posix::stream_descriptor& descriptor) {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this, &descriptor](const boost::system::error_code& error) {
                            if (error) return;
                            work();
                            wait(descriptor);
                          });
  }

  // A send may have taken in commands that came with news of reads: no edge will tell of them again.
  void look_again() {
    if (looking_again_) return;
    looking_again_ = true;
    asio::post(loop_, [this, alive = alive_] {
      if (!*alive) return;
      looking_again_ = false;
      work();
    });
  }

  void work() {
    read_monitor();
    for (int i = 0; i < messages_per_turn; ++i) {
      if (!reading_ || !read_message()) {
        listener_.on_writable();
        return;
      }
    }
    look_again();
  }

  // Reads all that the monitor has; each event is two parts: number and descriptor, then the endpoint.
  void read_monitor() {
    zmq::message_t event;
    while (receive_now(monitor_, event)) {
      std::uint16_t number = 0;
      std::uint32_t descriptor = 0;
      if (event.size() >= sizeof number + sizeof descriptor) {
        std::memcpy(&number, event.data(), sizeof number);
        std::memcpy(&descriptor, event.data<char>() + sizeof number, sizeof descriptor);
      }
      zmq::message_t address;
      if (event.more()) (void)receive_now(monitor_, address);
      if (number == ZMQ_EVENT_ACCEPTED) {
        peers_.accepted(static_cast<int>(descriptor));
      } else if (number == ZMQ_EVENT_DISCONNECTED) {
        if (const auto gone = peers_.disconnected(static_cast<int>(descriptor))) listener_.on_gone(*gone);
      }
    }
  }

  bool receive(Multipart& message) {
    message.parts.clear();
    message.too_many = false;
    for (;;) {
      zmq::message_t part;
      if (!receive_now(router_, part)) return false;
      const bool more = part.more();
      if (message.parts.size() <= proto::max_parts) {
        message.parts.push_back(std::move(part));
      } else {
        message.too_many = true;
      }
      if (!more) return true;
    }
  }

  bool read_message() {
    if (!receive(received_)) return false;
    // The monitor's events that are older than this message have to be known before it is given to a client.
    read_monitor();
    const auto& parts = received_.parts;
    const int descriptor = zmq_msg_get(const_cast<zmq_msg_t*>(parts[0].handle()), ZMQ_SRCFD);
    const ZmqPeers::Arrival arrival = peers_.arrived(parts[0].to_string_view(), descriptor);
    if (arrival.replaced) listener_.on_gone(*arrival.replaced);
    if (arrival.is_new) {
      listener_.on_client(
          *this, arrival.client,
          {is_ipc_ ? peer_userid(descriptor) : proto::userid_unknown, proto::userid_unknown, {}, {}});
    }
    deliver(arrival.client);
    if (arrival.is_gone) {
      peers_.forget(arrival.client);
      listener_.on_gone(arrival.client);
    }
    return true;
  }

  void deliver(ClientId client) {
    std::vector<std::string_view> parts;
    parts.reserve(received_.parts.size());
    for (std::size_t i = 1; i < received_.parts.size(); ++i)
      parts.push_back(received_.parts[i].to_string_view());
    std::optional<proto::Message> message;
    try {
      if (received_.too_many) throw Error(EPROTO, "too many parts");
      message = proto::from_parts(parts);
    } catch (const Error& error) {
      listener_.on_malformed(error.what());
      return;
    }
    listener_.on_message(client, std::move(*message));
  }

  // Returns the errno of a refusal.
  std::optional<int> send_part(std::string_view part, bool more) {
    const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
    while (zmq_send(router_.handle(), part.data(), part.size(), flags) < 0) {
      if (errno != EINTR) return errno;
    }
    return std::nullopt;
  }

  // Large payloads go to many clients: their bytes are shared, not copied.
  void send_shared(const proto::Payload& payload, bool more) {
    constexpr std::size_t worth_sharing = 4096;
    if (payload->size() < worth_sharing) {
      send_part(*payload, more);
      return;
    }
    auto* keep = new proto::Payload(payload);
    const auto release = [](void* /*data*/, void* hint) { delete static_cast<proto::Payload*>(hint); };
    zmq::message_t message(const_cast<char*>(payload->data()), payload->size(), release, keep);
    const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
    while (zmq_msg_send(message.handle(), router_.handle(), flags) < 0 && errno == EINTR) {
    }
  }

  asio::io_context& loop_;
  Listener& listener_;
  ZmqPeers peers_;
  zmq::socket_t router_;
  zmq::socket_t monitor_;
  asio::posix::stream_descriptor router_ready_;
  asio::posix::stream_descriptor monitor_ready_;
  bool is_ipc_;
  std::string endpoint_;
  Multipart received_;
  bool reading_ = true;
  bool looking_again_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Transport> make_zmq_transport(asio::io_context& loop, zmq::context_t& context,
                                              const std::string& uri, const ZmqOptions& options,
                                              ClientIds& ids, Listener& listener) {
  return std::make_unique<ZmqTransport>(loop, context, uri, options, ids, listener);
}

}  // namespace resourced::daemon
