#include "daemon/http/http_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/http/gzip.hpp"
#include "daemon/http/response.hpp"
#include "daemon/http/status.hpp"
#include "daemon/http/target.hpp"
#include "daemon/http/web_files.hpp"
#include "daemon/transport/accepting.hpp"
#include "daemon/transport/socket_file.hpp"
#include "daemon/transport/token_bucket.hpp"
#include "os/loop.hpp"
#include "os/sha256.hpp"
#include "proto/topics/metrics.hpp"

namespace resourced::daemon::http {
namespace {

namespace asio = boost::asio;
using asio::generic::stream_protocol;
using proto::ClientId;
using transport::ClientIds;
using transport::Credentials;
using transport::Listener;
using transport::SendResult;

// Maximum size of unsent responses, in bytes: of one address or uid, and of all.
constexpr std::size_t most_unsent_of_peer = std::size_t{32} << 20;
constexpr std::size_t most_unsent = std::size_t{128} << 20;

/// How a request wants its response.
struct Reply {
  bool is_head = false;
  bool keeps_alive = false;
  bool takes_gzip = false;
};

/// The request that a connection waits for.
struct Pending {
  const ServedTopic* topic = nullptr;
  Form form = Form::json;
  Reply reply = {};
};

struct Peer {
  std::shared_ptr<HttpConnection> connection = nullptr;
  /// The identity of the connection; a request may add a token to it.
  Origin origin;
  /// The client for the token of its last request, if there was one.
  std::optional<ClientId> client = std::nullopt;
  std::string token = {};
  Pending pending = {};
  std::uint32_t matchtag = 0;
  /// The requests of the connection, of those too that reach no service: files, and refusals.
  transport::TokenBucket requests = {};
};

using ConnectionId = std::uint64_t;

class HttpTransport final : public HttpServer {
 public:
  HttpTransport(asio::io_context& loop, HttpEndpoint endpoint, const HttpOptions& options, const Site& site,
                ClientIds& ids, Listener& listener)
      : loop_(loop),
        place_(std::move(endpoint)),
        options_(options),
        site_(site),
        ids_(ids),
        listener_(listener),
        accepting_(loop, options.holds,
                   {[this](stream_protocol::socket socket) { meet(std::move(socket)); },
                    [this](const std::string& why) { report(why); }}) {
    listen_at(accepting_.acceptor(), place_);
    if (place_.is_local()) file_.emplace(place_.path);
    accepting_.begin();
  }

  ~HttpTransport() override {
    *alive_ = false;
    for (auto& [id, peer] : peers_) peer.connection->close();
    tls_thread_.reset();
  }

  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;
  HttpTransport(HttpTransport&&) = delete;
  HttpTransport& operator=(HttpTransport&&) = delete;

  std::string endpoint() const override { return place_.uri(site_.tls != nullptr); }

  bool is_reachable() const override { return !file_ || file_->is_there(); }

  SendResult send(ClientId client, const proto::Message& message) override {
    const auto found = of_clients_.find(client);
    if (found == of_clients_.end()) return SendResult::gone;
    Peer& peer = peers_.at(found->second);
    // Ignore a response to a request that the connection has abandoned.
    if (message.matchtag != peer.matchtag || peer.pending.topic == nullptr) return SendResult::sent;
    if (peer.pending.topic->streams) return send_event(peer, message);
    const Pending pending = std::exchange(peer.pending, {});
    if (message.errnum() != 0) {
      refuse(peer, error_of(message, pending.form), pending.reply.is_head, pending.reply.keeps_alive);
    } else {
      send_answer(peer, message, pending);
    }
    return SendResult::sent;
  }

  void drop(ClientId client) override {
    const auto found = of_clients_.find(client);
    if (found == of_clients_.end()) return;
    const auto peer = peers_.find(found->second);
    peer->second.connection->close();
    forget(peer);
  }

  void stop_reading() override {
    accepting_.end();
    std::vector<std::shared_ptr<HttpConnection>> all;
    for (auto& [id, peer] : peers_) all.push_back(peer.connection);
    for (const auto& connection : all) connection->stop_reading();
  }

  std::size_t unsent() const override { return unsent_; }

  void end_connections() override {
    if (place_.is_local()) return;
    std::vector<ConnectionId> all;
    for (const auto& [id, peer] : peers_) all.push_back(id);
    for (const ConnectionId id : all) {
      peers_.at(id).connection->close();
      on_closed(id);
    }
  }

 private:
  void report(const std::string& why) {
    listener_.on_refused(fmt::format("cannot accept a connection on {}: {}", endpoint(), why));
  }

  void meet(stream_protocol::socket socket) {
    const std::optional<Origin> origin = origin_of(socket, place_);
    if (!origin) return;
    Peer peer{.origin = *origin};
    boost::system::error_code ignored;
    socket.non_blocking(true, ignored);
    if (!options_.http_connections->add(peer.origin.name)) return turn_away(socket, peer.origin.name);
    if (!options_.connections->add(peer.origin.name)) {
      options_.http_connections->remove(peer.origin.name);
      return turn_away(socket, peer.origin.name);
    }
    const bool has_tls = !place_.is_local() && site_.tls;
    if (has_tls && !tls_thread_) tls_thread_ = std::make_unique<TlsThread>();
    auto wire = has_tls ? tls_thread_->wire(std::move(socket), site_.tls) : plain_wire(std::move(socket));
    const ConnectionId id = ++last_connection_;
    peer.connection = std::make_shared<HttpConnection>(loop_.get_executor(), std::move(wire),
                                                       options_.patience, events(id, peer.origin.name));
    peers_.emplace(id, peer);
    peer.connection->start();
  }

  void turn_away(stream_protocol::socket& socket, const std::string& name) {
    listener_.on_refused(fmt::format("{} has too many connections to {}", name, endpoint()));
    if (!place_.is_local() && site_.tls) return;
    const Text text = describe({Status::unavailable, "too many connections"});
    const std::string bytes =
        encode({Status::unavailable, text.content_type, text.body.size(), false, text.fields}) + text.body;
    boost::system::error_code ignored;
    socket.send(asio::buffer(bytes), 0, ignored);
  }

  HttpConnection::Events events(ConnectionId id, const std::string& name) {
    return {[this, id, name] {
              turns_.ask(name, id);
              serve_soon();
            },
            [this, id](const Request& request) { take(peers_.at(id), id, request); },
            [this, id](const Refusal& refusal) {
              listener_.on_malformed(ClientId{}, "HTTP: " + refusal.text);
              refuse(peers_.at(id), refusal, false, false);
            },
            [this, id] { on_closed(id); },
            [this] { listener_.on_writable(); },
            [this, name](std::ptrdiff_t bytes) { count_unsent(name, bytes); },
            options_.holds};
  }

  void count_unsent(const std::string& name, std::ptrdiff_t bytes) {
    unsent_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(unsent_) + bytes);
    std::size_t& of_peer = unsent_of_[name];
    of_peer = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(of_peer) + bytes);
    if (of_peer == 0) unsent_of_.erase(name);
  }

  void serve_soon() {
    if (std::exchange(serving_, true)) return;
    asio::post(loop_, [this, alive = alive_] {
      if (*alive) serve();
    });
  }

  // Serves one turn; then the loop does its other work.
  void serve() {
    serving_ = false;
    const auto found = peers_.find(turns_.next());
    if (found != peers_.end()) {
      const std::shared_ptr<HttpConnection> connection = found->second.connection;
      connection->take_turn();
    }
    if (!turns_.empty()) serve_soon();
  }

  void on_closed(ConnectionId id) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    const std::optional<ClientId> client = found->second.client;
    forget(found);
    if (client) listener_.on_gone(*client);
  }

  using Peers = std::unordered_map<ConnectionId, Peer>;

  void forget(Peers::iterator found) {
    if (found->second.client) of_clients_.erase(*found->second.client);
    options_.connections->remove(found->second.origin.name);
    options_.http_connections->remove(found->second.origin.name);
    peers_.erase(found);
  }

  [[nodiscard]] std::optional<Refusal> turn_down_host(const Peer& peer, const Request& request,
                                                      const Target& target) const {
    for (const std::optional<std::string>& host : {request.host, target.host}) {
      if (host && !site_.names.has(*host, peer.origin.own_address)) {
        return Refusal{Status::misdirected,
                       "this server has another name than the Host of the request; see http.names"};
      }
    }
    return std::nullopt;
  }

  // Sets the identity of a request, or refuses it.
  std::optional<Refusal> turn_down(const Peer& peer, Credentials& credentials, const Request& request) const {
    if (!place_.is_local() && site_.needs_token) {
      credentials.reads_by_loopback = false;
      credentials.address.clear();
      const auto token = token_of(request.authorization);
      if (token) credentials.token = os::sha256(*token);
      if (!token || !options_.welcomes(credentials))
        return Refusal{Status::unauthorized, "a known token is required", EACCES};
    }
    if (!options_.welcomes(credentials))
      return Refusal{Status::forbidden, peer.origin.name + " has no role", EPERM};
    return std::nullopt;
  }

  void take(Peer& peer, ConnectionId id, const Request& request) {
    const auto rate = static_cast<double>(options_.requests_per_second());
    if (peer.requests.take(os::steady_clock(), {rate, rate}, 1) < 0) {
      return refuse(peer, {Status::unavailable, "more requests in a second than limits.requests-per-second"},
                    request.is_head, false);
    }
    const Target target = read_target(request);
    if (const auto refusal = turn_down_host(peer, request, target)) return turn_down(peer, request, *refusal);
    if (std::holds_alternative<LifeSign>(target.wanted)) {
      const auto text = std::make_shared<const std::string>("ok\n");
      return send_body(peer, metrics_type, *text, text, {request.is_head, request.keeps_alive});
    }
    const auto* file = std::get_if<NamedFile>(&target.wanted);
    // Serve the page without a token: it has no secrets, and asks for a token itself.
    if (file != nullptr && site_.needs_token) return send_file(peer, *file, request);
    Credentials credentials = peer.origin.credentials;
    if (const auto refusal = turn_down(peer, credentials, request)) return turn_down(peer, request, *refusal);
    if (const auto* refusal = std::get_if<Refusal>(&target.wanted))
      return refuse(peer, *refusal, request.is_head, request.keeps_alive);
    if (file != nullptr) return send_file(peer, *file, request);
    ask(peer, id, credentials, request, std::get<Ask>(target.wanted));
  }

  void turn_down(Peer& peer, const Request& request, const Refusal& refusal) {
    listener_.on_refused(fmt::format("HTTP: {}: {}", peer.origin.name, refusal.text));
    refuse(peer, refusal, request.is_head, request.keeps_alive);
  }

  void send_file(Peer& peer, const NamedFile& wanted, const Request& request) {
    if (!has_room(peer)) {
      return refuse(peer, {Status::unavailable, "too much waits to be read by " + peer.origin.name},
                    request.is_head, request.keeps_alive);
    }
    const auto files = web_files();
    const auto file = std::ranges::find(files, wanted.name, &WebFile::name);
    if (file == files.end())
      return refuse(peer, {Status::not_found, "there is no such file"}, request.is_head, request.keeps_alive);
    const bool is_known = matches(request.if_none_match, file->entity_tag);
    const std::string head = encode({is_known ? Status::not_modified : Status::ok, file->content_type,
                                     file->content.size(), request.keeps_alive, fields_of(*file)});
    // The owner of the content, which is a part of the program: it is not copied and lives as long as the
    // program.
    static const proto::Payload program = std::make_shared<const std::string>();
    peer.connection->respond(head, request.is_head || is_known ? std::string_view() : file->content, program,
                             request.keeps_alive);
  }

  void ask(Peer& peer, ConnectionId id, const Credentials& credentials, const Request& request,
           const Ask& ask) {
    if (ask.topic->streams && request.is_head)
      return peer.connection->respond(encode_stream_head(), {}, nullptr, false);
    if (!has_room(peer)) {
      return refuse(peer, {Status::unavailable, "too much waits to be read by " + peer.origin.name, EBUSY},
                    request.is_head, request.keeps_alive);
    }
    if (!peer.client || peer.token != credentials.token) become_client(peer, id, credentials);
    peer.pending = {ask.topic, ask.form,
                    Reply{request.is_head, request.keeps_alive && !ask.topic->streams, request.takes_gzip}};
    const proto::Payload payload = proto::make_payload(ask.payload);
    const std::uint8_t flags = ask.topic->streams ? proto::flag::streaming : std::uint8_t{0};
    // Call the listener last: it may drop the client, and so this connection.
    listener_.on_message(*peer.client,
                         proto::make_request(std::string(ask.topic->name), ++peer.matchtag, payload, flags));
  }

  // Sets the client of a connection: another one for another token, because a client has one identity.
  void become_client(Peer& peer, ConnectionId id, const Credentials& credentials) {
    if (peer.client) {
      of_clients_.erase(*peer.client);
      listener_.on_gone(*std::exchange(peer.client, std::nullopt));
    }
    peer.client = ids_.next();
    peer.token = credentials.token;
    of_clients_.emplace(*peer.client, id);
    listener_.on_client(*this, *peer.client, credentials);
  }

  [[nodiscard]] bool has_room(const Peer& peer) const {
    const auto found = unsent_of_.find(peer.origin.name);
    return unsent_ < most_unsent && (found == unsent_of_.end() || found->second < most_unsent_of_peer);
  }

  static Refusal error_of(const proto::Message& message, Form form) {
    const Error error = proto::response_error(message);
    // A refusal without an errno is plain text.
    if (form == Form::plain) return {Status::unavailable, error.what()};
    return {status_of(error.errnum()), error.what(), error.errnum()};
  }

  void refuse(Peer& peer, const Refusal& refusal, bool is_head, bool keeps_alive) {
    const Text text = describe(refusal);
    const std::string head =
        encode({refusal.status, text.content_type, text.body.size(), keeps_alive, text.fields});
    peer.connection->respond(head, is_head ? std::string_view() : text.body, nullptr, keeps_alive);
  }

  void send_answer(Peer& peer, const proto::Message& message, const Pending& pending) {
    if (pending.form == Form::json)
      return send_body(peer, json_type, message.text(), message.payload, pending.reply);
    const proto::Payload text = plain_text(message);
    send_body(peer, metrics_type, *text, text, pending.reply);
  }

  // Returns the text of a payload. The service may send the same payload again, so the last one is kept: a
  // large one takes long to make.
  proto::Payload plain_text(const proto::Message& message) {
    if (!message.payload) return std::make_shared<const std::string>("ready\n");
    if (plain_of_ != message.payload) {
      plain_ = std::make_shared<const std::string>(proto::topics::parse_metrics(message.text()));
      plain_of_ = message.payload;
    }
    return plain_;
  }

  void send_body(Peer& peer, std::string_view type, std::string_view body, const proto::Payload& owner,
                 const Reply& reply) {
    const auto send = [connection = peer.connection, type, reply](const proto::Payload& compressed) {
      const std::string head = encode({Status::ok, type, compressed->size(), reply.keeps_alive,
                                       "Content-Encoding: gzip\r\nCache-Control: no-store\r\n"});
      connection->respond(head, *compressed, compressed, reply.keeps_alive);
    };
    if (reply.takes_gzip && !reply.is_head && compressor_.compress(body, owner, send)) return;
    const std::string head = encode({Status::ok, type, body.size(), reply.keeps_alive});
    peer.connection->respond(head, reply.is_head ? std::string_view() : body, owner, reply.keeps_alive);
  }

  SendResult send_event(Peer& peer, const proto::Message& message) {
    HttpConnection& connection = *peer.connection;
    const bool has_begun = connection.is_streaming();
    if (message.errnum() != 0) {
      const Pending pending = std::exchange(peer.pending, {});
      const Refusal refusal = error_of(message, pending.form);
      if (has_begun) {
        connection.end_stream(encode_end(refusal.errnum, refusal.text));
      } else {
        refuse(peer, refusal, pending.reply.is_head, false);
      }
      return SendResult::sent;
    }
    if (has_begun && connection.is_full()) return SendResult::full;
    if (!has_begun) connection.begin_stream(encode_stream_head());
    connection.stream(before_event(message.text()), message.text(), message.payload, after_event);
    return SendResult::sent;
  }

  asio::io_context& loop_;
  HttpEndpoint place_;
  std::optional<transport::OwnSocketFile> file_;
  HttpOptions options_;
  const Site& site_;
  ClientIds& ids_;
  Listener& listener_;
  /// The thread for TLS, made for the first such connection. Ends once all connections are closed.
  std::unique_ptr<TlsThread> tls_thread_;
  transport::Accepting<stream_protocol> accepting_;
  Peers peers_;
  std::unordered_map<ClientId, ConnectionId> of_clients_;
  ConnectionId last_connection_ = 0;
  transport::FairTurns<ConnectionId> turns_;
  bool serving_ = false;
  /// The last payload whose text was sent, and the text.
  proto::Payload plain_of_;
  proto::Payload plain_;
  Compressor compressor_{loop_.get_executor()};
  std::size_t unsent_ = 0;
  /// Unsent bytes by peer, only of peers that have some.
  std::unordered_map<std::string, std::size_t> unsent_of_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<HttpServer> make_http_transport(asio::io_context& loop, const HttpEndpoint& endpoint,
                                                const HttpOptions& options, const Site& site, ClientIds& ids,
                                                Listener& listener) {
  return std::make_unique<HttpTransport>(loop, endpoint, options, site, ids, listener);
}

}  // namespace resourced::daemon::http
