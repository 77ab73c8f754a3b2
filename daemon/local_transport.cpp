#include "daemon/local_transport.hpp"

#include <unordered_map>
#include <utility>

#include <boost/asio/local/stream_protocol.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.hpp"
#include "daemon/local_connection.hpp"
#include "daemon/socket_file.hpp"

namespace resourced::daemon {
namespace {

namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;

Credentials peer_credentials(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  return {peer.uid, peer.gid, {}, {}};
}

class LocalTransport final : public Transport {
 public:
  LocalTransport(asio::io_context& loop, std::string path, const LocalOptions& options, ClientIds& ids,
                 Listener& listener)
      : path_(std::move(path)), options_(options), ids_(ids), listener_(listener), acceptor_(loop) {
    const Protocol::endpoint endpoint(path_);
    remove_stale();
    boost::system::error_code error;
    acceptor_.open(endpoint.protocol());
    acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw Error(error.value(), fmt::format("cannot listen on {}: {}", this->endpoint(), error.message()));
    accept();
  }

  ~LocalTransport() override {
    for (auto& [client, connection] : connections_) connection->close();
    unlink(path_.c_str());
  }

  LocalTransport(const LocalTransport&) = delete;
  LocalTransport& operator=(const LocalTransport&) = delete;
  LocalTransport(LocalTransport&&) = delete;
  LocalTransport& operator=(LocalTransport&&) = delete;

  std::string endpoint() const override { return "local://" + path_; }

  SendResult send(ClientId client, const proto::Message& message) override {
    const auto found = connections_.find(client);
    return found == connections_.end() ? SendResult::gone : found->second->send(message);
  }

  void drop(ClientId client) override {
    const auto found = connections_.find(client);
    if (found == connections_.end()) return;
    found->second->close();
    connections_.erase(found);
  }

  void stop_reading() override {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    for (auto& [client, connection] : connections_) connection->stop_reading();
  }

 private:
  void remove_stale() {
    const SocketFile file = look_at_socket(path_);
    if (file == SocketFile::in_use)
      throw Error(EADDRINUSE, fmt::format("cannot listen on {}: in use", endpoint()));
    if (file == SocketFile::stale) unlink(path_.c_str());
  }

  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, Protocol::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) welcome(std::move(socket));
      if (acceptor_.is_open()) accept();
    });
  }

  void welcome(Protocol::socket socket) {
    const ClientId client = ids_.next();
    const Credentials credentials = peer_credentials(socket.native_handle());
    LocalConnection::Events events{
        [this, client](const proto::Parts& parts) { deliver(client, parts); },
        [this, client] {
          connections_.erase(client);
          listener_.on_gone(client);
        },
        [this] { listener_.on_writable(); },
        [this](const std::string& reason) { listener_.on_malformed(reason); },
    };
    auto connection =
        std::make_shared<LocalConnection>(std::move(socket), options_.max_message_size, std::move(events));
    connections_.emplace(client, connection);
    listener_.on_client(*this, client, credentials);
    connection->start();
  }

  void deliver(ClientId client, const proto::Parts& parts) {
    proto::Message message;
    try {
      message = proto::from_parts(parts);
    } catch (const Error& error) {
      listener_.on_malformed(error.what());
      return;
    }
    listener_.on_message(client, std::move(message));
  }

  std::string path_;
  LocalOptions options_;
  ClientIds& ids_;
  Listener& listener_;
  Protocol::acceptor acceptor_;
  std::unordered_map<ClientId, std::shared_ptr<LocalConnection>> connections_;
};

}  // namespace

std::unique_ptr<Transport> make_local_transport(asio::io_context& loop, const std::string& path,
                                                const LocalOptions& options, ClientIds& ids,
                                                Listener& listener) {
  return std::make_unique<LocalTransport>(loop, path, options, ids, listener);
}

}  // namespace resourced::daemon
