#include "daemon/transport/local_transport.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "core/error.hpp"
#include "daemon/transport/accepting.hpp"
#include "daemon/transport/connection_count.hpp"
#include "daemon/transport/local_connection.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/socket_file.hpp"

namespace resourced::daemon::transport {
namespace {

namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;

class LocalTransport final : public Transport {
 public:
  LocalTransport(asio::io_context& loop, std::string path, const LocalOptions& options, ClientIds& ids,
                 Listener& listener)
      : loop_(loop),
        path_(std::move(path)),
        options_(options),
        ids_(ids),
        listener_(listener),
        accepting_(loop, options.holds,
                   {[this](Protocol::socket socket) { meet(std::move(socket)); },
                    [this](const std::string& why) { report(why); }}),
        count_(options.connections ? options.connections
                                   : std::make_shared<ConnectionCount>(ConnectionCount::Limits{})) {
    const Protocol::endpoint endpoint(path_);
    clear_socket(path_, this->endpoint());
    boost::system::error_code error;
    Protocol::acceptor& acceptor = accepting_.acceptor();
    acceptor.open(endpoint.protocol());
    // Report ECONNABORTED and EPROTO. By default Asio drops them and waits for another connection, which
    // delays connections that wait already.
    acceptor.set_option(asio::socket_base::enable_connection_aborted(true));
    acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw Error(error.value(), fmt::format("cannot listen on {}: {}", this->endpoint(), error.message()));
    file_.emplace(path_);
    accepting_.begin();
  }

  ~LocalTransport() override {
    *alive_ = false;
    for (auto& [client, peer] : connections_) peer.connection->close();
  }

  LocalTransport(const LocalTransport&) = delete;
  LocalTransport& operator=(const LocalTransport&) = delete;
  LocalTransport(LocalTransport&&) = delete;
  LocalTransport& operator=(LocalTransport&&) = delete;

  std::string endpoint() const override { return "local://" + path_; }

  bool is_reachable() const override { return !file_ || file_->is_there(); }

  SendResult send(ClientId client, const proto::Message& message) override {
    const auto found = connections_.find(client);
    return found == connections_.end() ? SendResult::gone : found->second.connection->send(message);
  }

  void drop(ClientId client) override {
    const auto found = connections_.find(client);
    if (found == connections_.end()) return;
    found->second.connection->close();
    forget(found);
  }

  void stop_reading() override {
    accepting_.end();
    for (auto& [client, peer] : connections_) peer.connection->stop_reading();
  }

  void end_writing() override {
    for (auto& [client, peer] : connections_) peer.connection->end_writing();
  }

  std::size_t unsent() const override {
    std::size_t bytes = 0;
    for (const auto& [client, peer] : connections_) bytes += peer.connection->unsent();
    return bytes;
  }

  std::size_t unclosed() const override {
    return static_cast<std::size_t>(std::ranges::count_if(
        connections_, [](const auto& peer) { return peer.second.connection->told_the_end(); }));
  }

 private:
  void report(const std::string& why) {
    listener_.on_refused(fmt::format("cannot accept a connection on {}: {}", endpoint(), why));
  }

  void meet(Protocol::socket socket) {
    Credentials credentials;
    if (const auto process = peer_process(socket.native_handle())) {
      credentials.userid = process->userid;
      credentials.groupid = process->groupid;
    }
    const std::string peer = fmt::format("uid {}", credentials.userid);
    if (options_.welcomes && !options_.welcomes(credentials)) {
      turn_away(socket, EPERM);
      listener_.on_refused(fmt::format("{} has no role", peer));
    } else if (!count_->add(peer)) {
      turn_away(socket, EBUSY);
      listener_.on_refused(fmt::format("{} has too many connections to {}", peer, endpoint()));
    } else {
      welcome(std::move(socket), credentials, peer);
    }
  }

  static void turn_away(Protocol::socket& socket, int errnum) {
    const char answer = static_cast<char>(errnum);
    boost::system::error_code ignored;
    socket.non_blocking(true, ignored);
    socket.send(asio::buffer(&answer, sizeof answer), 0, ignored);
  }

  void welcome(Protocol::socket socket, const Credentials& credentials, const std::string& peer) {
    const ClientId client = ids_.next();
    LocalConnection::Events events{
        [this, client](const proto::Parts& parts) { deliver(client, parts); },
        [this, client] {
          forget(connections_.find(client));
          listener_.on_gone(client);
        },
        [this] { listener_.on_writable(); },
        [this, client](const std::string& reason) { listener_.on_malformed(client, reason); },
        [this, client] { wait_for_turn(client); },
        options_.holds,
    };
    const bool is_owner = credentials.userid == 0 || credentials.userid == options_.owner;
    const std::size_t most =
        is_owner ? options_.max_message_size : std::min(options_.max_message_size, max_guest_message);
    auto connection =
        std::make_shared<LocalConnection>(std::move(socket), most, options_.frame_timeout, std::move(events));
    connections_.emplace(client, Peer{connection, peer});
    listener_.on_client(*this, client, credentials);
    connection->start();
  }

  void wait_for_turn(ClientId client) {
    const auto found = connections_.find(client);
    if (found == connections_.end()) return;
    turns_.ask(found->second.name, found->second.connection);
    serve_soon();
  }

  void serve_soon() {
    if (std::exchange(serving_, true)) return;
    asio::post(loop_, [this, alive = alive_] {
      if (*alive) serve();
    });
  }

  // Serves one turn, then lets the loop do other work.
  void serve() {
    serving_ = false;
    const std::shared_ptr<LocalConnection> connection = turns_.next();
    connection->take_turn();
    if (!turns_.empty()) serve_soon();
  }

  void deliver(ClientId client, const proto::Parts& parts) {
    proto::Message message;
    try {
      message = proto::from_parts(parts);
    } catch (const Error& error) {
      listener_.on_malformed(client, error.what());
      return;
    }
    listener_.on_message(client, std::move(message));
  }

  struct Peer {
    std::shared_ptr<LocalConnection> connection;
    std::string name;
  };
  using Peers = std::unordered_map<ClientId, Peer>;

  void forget(Peers::iterator peer) {
    count_->remove(peer->second.name);
    connections_.erase(peer);
  }

  asio::io_context& loop_;
  std::string path_;
  std::optional<OwnSocketFile> file_;
  LocalOptions options_;
  ClientIds& ids_;
  Listener& listener_;
  Accepting<Protocol> accepting_;
  std::shared_ptr<ConnectionCount> count_;
  Peers connections_;
  FairTurns<std::shared_ptr<LocalConnection>> turns_;
  bool serving_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Transport> make_local_transport(asio::io_context& loop, const std::string& path,
                                                const LocalOptions& options, ClientIds& ids,
                                                Listener& listener) {
  return std::make_unique<LocalTransport>(loop, path, options, ids, listener);
}

}  // namespace resourced::daemon::transport
