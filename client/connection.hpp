// A connection to the daemon, over ZeroMQ (ipc:, tcp:) or a Unix socket (local:): remote procedure calls as
// of RFC 6, one at a time (call) or many at once with handlers (send), streams included. It has no thread of
// its own except the one of libzmq for input and output: handlers run inside process(), wait(), run(),
// run_for(), connect() and call().
//
// In an event loop: wait until fd() is readable, then call process(). The descriptor is level-triggered and
// stays the same for the life of the object, whatever happens to the connection. (ZMQ_FD itself is
// edge-triggered and belongs to one socket: the descriptor here is an epoll instance over it, the socket's
// monitor and a timer, and every function here that touches the socket looks at ZMQ_EVENTS afterwards and
// makes the timer fire if there is something left to read. Time-outs of requests use the same timer, so that
// one descriptor is all there is to watch.)
//
// The connection is made when something is sent. If the attempt fails, the requests that wait to be sent
// fail, except those with wait_for_daemon, for which new attempts are made until they can be sent, or until
// the daemon refuses this client's key or user. When an established connection is lost, every request that
// was sent fails with ECONNRESET; the next one makes a new connection.
//
// With several URIs, those of the daemons of a cluster, all are asked at once, and the leader gets the
// requests, each of which waits for it (wait_for_daemon). If two lead different clusters, or one that answers
// is in no cluster, requests and connect() fail with EINVAL. A question (client/repeatable.hpp) whose answer
// was lost is sent again, once. A change is sent again only after a refusal that says that nothing was
// changed (EHOSTUNREACH of a standby, EAGAIN of a leader that cannot commit), and only if only questions were
// sent after it, so that changes keep their order. A change whose answer was lost fails with ECONNRESET, as
// it may have been made. A clean shutdown of the leader counts as a lost connection: its streams fail with
// ECONNRESET, and nothing more is sent to it.
//
// A connection belongs to the process that made it. In a child of fork(2), close(), the destructor and what
// ends requests do nothing, and all else throws Error ENOTCONN: the child makes a connection of its own.
//
// Threads: all functions of a connection, stop() and the destructor included, and of all objects that use it
// (acquisition, ledger, journal, operator, wait, driver) are for one thread at a time. Another thread may go
// on with them later if a mutex or a join orders the calls. Several connections may have a thread each, at
// the same time. Handlers run in the thread that calls the function that runs them.
//
// Handlers, the functions of timers included, may rely on and may do the following:
// - A handler is called at most once with a last response. It is not called after forget() of its request or
//   after close(), even if a response or a failure was pending.
// - A handler may call everything here except connect(), call(), process(), wait(), run() and run_for(),
//   which throw Error EDEADLK.
// - A handler may close() the connection, and destroy it: no other handler is called then. process(), run()
//   and run_for() return; connect(), call() and wait() throw Error ENOTCONN if what they wait for has not
//   come.
// - A handler may throw. The exception leaves through the function that ran the handler. The response counts
//   as delivered, other requests keep theirs, and the next process() continues with them.
// - A handler is destroyed with its request, at the latest by close(). Destructors of what it holds may
//   cancel() and forget() requests and cancel timers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"

#pragma GCC visibility push(default)
namespace resourced::client {

/// One response to a request (RFC 6): a payload or an error, sent by the daemon or found on this side (daemon
/// not reachable, connection lost, no answer in time). A value: copies may be read in any thread.
class Response {
 public:
  using Payload = std::shared_ptr<const std::string>;

  /// A success that the daemon sent, with its unchanged payload or null.
  Response(std::string topic, Payload payload, bool last);
  /// A failure, sent by the daemon or found on this side (`local`).
  Response(std::string topic, Error failure, bool local);

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  /// Whether no further response to the request follows.
  [[nodiscard]] bool last() const noexcept { return last_; }
  /// Whether the failure was found on this side instead of sent by the daemon.
  [[nodiscard]] bool local() const noexcept { return local_; }
  [[nodiscard]] const std::string& topic() const noexcept { return topic_; }

  /// Returns the failure. Its text is one line of at most 1024 bytes without control characters. Requires
  /// !ok().
  [[nodiscard]] const Error& error() const;

  /// Returns the payload as it was sent, one JSON object; empty if there is none. Requires ok().
  [[nodiscard]] std::string_view text() const noexcept;
  /// Returns the payload, or an empty object if there is none. Throws the failure if there is one, and Error
  /// EPROTO if the payload is not a JSON object.
  [[nodiscard, gnu::visibility("hidden")]] nlohmann::json payload() const;

 private:
  std::string topic_;
  Payload payload_;
  std::optional<Error> error_;
  bool last_ = true;
  bool local_ = false;
};

using Milliseconds = std::chrono::milliseconds;
/// Number of a leader of a cluster: each leader has a higher one than those before it.
using Epoch = std::uint64_t;

/// Times here and below may be their maximum, which means for ever.
struct ConnectionOptions {
  /// The file with the keys of this client and of the daemon that it trusts (`resourcectl keygen
  /// --server-key`), for tcp: addresses of a daemon that asks for keys (CURVE). Empty: $RESOURCED_KEY, or no
  /// keys if that is not set. Ignored for ipc: and local: addresses, where the kernel identifies the client.
  std::string key_file = {};
  /// Maximum time of one attempt to connect, with the look-up of the host's name. All addresses of the host
  /// are tried in turn, each of several for an equal part of this time.
  Milliseconds connect_timeout{5000};
  /// Time-out of call() if none is given.
  Milliseconds call_timeout{30000};
  /// With several URIs: how long connect() looks for the leader, as a standby takes some seconds to take
  /// over, and how long a change without a time-out is sent again while the daemon refuses it with EAGAIN.
  Milliseconds failover_timeout{20000};
  /// Maximum time that close() waits for messages on their way out.
  Milliseconds linger{1000};
  /// ZMTP heartbeats for ipc: and tcp: URIs: their interval, and the time without a sign of life after which
  /// the connection counts as lost. By default 5 s and 15 s, and with several URIs 1 s and 3 s, as another
  /// daemon leads by then. A local: URI has heartbeats only among several URIs, as requests.
  std::optional<Milliseconds> heartbeat_interval = std::nullopt;
  std::optional<Milliseconds> heartbeat_timeout = std::nullopt;
  /// Whether the daemon should also take the connection for lost after heartbeat_timeout
  /// (ZMQ_HEARTBEAT_TTL).
  bool heartbeat_ttl = true;
  /// The pause between attempts to connect for requests with wait_for_daemon, and between questions for the
  /// leader: it doubles from the first value up to the second. With several URIs each pause is a random time
  /// between half of that value and the whole.
  Milliseconds retry_first{20};
  Milliseconds retry_most{1000};
  /// With several URIs: called with the reasons of the daemons why none leads, once the search for the leader
  /// has taken some seconds, and again when the reasons have changed, in the thread that runs handlers. It
  /// must not use the connection.
  std::function<void(const std::string&)> on_no_leader = nullptr;
  /// Maximum size in bytes of an accepted message; a longer one ends the connection. An R of a million nodes
  /// with their graph fits.
  std::size_t max_message_size = std::size_t{1} << 30;
  /// Maximum number of messages and events that one process() handles, so that a flood of responses does not
  /// starve the caller's loop.
  int most_steps = 1000;
};

struct SendOptions {
  /// After this time without a final response the handler gets a local ETIMEDOUT, and a stream is cancelled
  /// at the daemon. Zero: never.
  Milliseconds timeout{0};
  /// If the daemon answers nothing within this time after the request was sent, the handler gets a local
  /// ETIMEDOUT. The time begins again if the request is sent again. Zero: never.
  Milliseconds answer_timeout{0};
  /// Set the streaming flag: the handler is called for each response until the last.
  bool streaming = false;
  /// Keep the request until the daemon can be reached, instead of failing when it cannot.
  bool wait_for_daemon = false;
};

class Ledger;

class Connection {
 public:
  using Handler = std::function<void(const Response&)>;
  using RequestId = std::uint64_t;
  using TimerId = std::uint64_t;

  /// Makes the object, without connecting yet. `uri` may be several, separated by commas: those of the
  /// daemons of a cluster. An empty `uri` means $RESOURCED_URI or else the default address of the daemon.
  /// Throws Error EINVAL for a URI that is not `ipc://PATH`, `local://PATH` or `tcp://HOST:PORT`, and an
  /// Error that names the key file if that cannot be used (EACCES when others may read it).
  explicit Connection(std::string uri = {}, ConnectionOptions options = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The state of the connection, for the thread that uses it.

  [[nodiscard]] const std::string& uri() const noexcept;
  [[nodiscard]] bool connected() const noexcept;
  /// Throws Error ENOTCONN that names `what` in a child that has forked from the process of this connection.
  void refuse_in_child(std::string_view what) const;
  /// Whether there are several URIs.
  [[nodiscard]] bool has_places() const noexcept;

  /// Waits until the daemon answers. Throws Error `cannot reach the daemon at URI: WHY` with the errno of the
  /// attempt (ENOENT, ECONNREFUSED, ETIMEDOUT, ...; EACCES where a key is missing or refused), and ECONNRESET
  /// if the connection was made and lost at once.
  void connect();

  /// Call with the leader's epoch and the cluster's id in a response. Returns false if an earlier response
  /// had a higher epoch of the same cluster: another daemon leads now, and this connection to the former
  /// leader counts as lost.
  bool follows(Epoch epoch, const std::string& cluster);

  // Requests. Their handlers run in the thread that calls the functions of the loop below, connect() or
  // call(), and never from inside another function. A thread that decides something for another one's
  // connection hands it over, for instance through a queue and an eventfd that the loop waits for beside
  // fd().
  //
  // A payload is a JSON object or nothing, which is empty as text and null as a value. Others are refused
  // with EINVAL.

  /// Sends a request, waits for its response and returns its payload, an empty object if it has none. Throws
  /// the daemon's Error; ETIMEDOUT with topic and endpoint; the Error of connect(); ECONNRESET.
  std::string call_text(std::string_view topic, std::string_view payload = {},
                        std::optional<Milliseconds> timeout = std::nullopt);
  [[gnu::visibility("hidden")]] nlohmann::json call(std::string_view topic);
  [[gnu::visibility("hidden")]] nlohmann::json call(std::string_view topic, const nlohmann::json& payload);
  [[gnu::visibility("hidden")]] nlohmann::json call(std::string_view topic, const nlohmann::json& payload,
                                                    Milliseconds timeout);

  /// Sends a request. The handler is called for each response and never from inside send().
  RequestId send(std::string_view topic, Handler handler, SendOptions options = {});
  RequestId send_text(std::string_view topic, std::string_view payload, Handler handler,
                      SendOptions options = {});
  [[gnu::visibility("hidden")]] RequestId send(std::string_view topic, const nlohmann::json& payload,
                                               Handler handler, SendOptions options = {});

  /// Asks the daemon to end a request (TOPIC-cancel). Its handler gets the responses that still come, and
  /// last the daemon's ECANCELED; a request that was not sent yet gets a local one. An unknown id is ignored.
  void cancel(RequestId id);
  /// Prevents further calls of the handler of a request, even if the daemon still sends responses or the
  /// request has failed already. An unknown id is ignored.
  void forget(RequestId id);

  /// Sends a message that gets no response; it is dropped if it cannot be sent.
  void notify_text(std::string_view topic, std::string_view payload = {});
  [[gnu::visibility("hidden")]] void notify(std::string_view topic, const nlohmann::json& payload);

  /// Calls f once, from process() or another function that runs handlers, when the time has passed.
  TimerId after(Milliseconds delay, std::function<void()> f);
  void cancel_timer(TimerId id);

  // The loop. These functions run handlers in the thread that calls them. Any thread may wait for the
  // descriptor, but only the thread of the connection may call process() then. stop() is for handlers and
  // that thread, and neither for another thread nor for a signal handler.

  [[nodiscard]] int fd() const noexcept;
  /// Handles messages, events and timers that are due, and returns without waiting, also while it connects.
  void process();
  /// Waits for at most this time (negative: for ever) until there is something to do, and does it. Returns
  /// early also when a signal arrives.
  void wait(Milliseconds longest);
  /// Processes until the time is over, or stop() was called. Returns true after stop().
  bool run_for(Milliseconds time);
  /// Processes until stop() is called.
  void run();
  void stop() noexcept;

  /// Tells the daemon to drop this client's streams (SERVICE.disconnect), and closes. Waits for at most the
  /// linger time; requests that have no response yet and timers are forgotten. Afterwards connect(), call(),
  /// send() and wait() throw Error ENOTCONN, and the others do nothing.
  void close();

 private:
  friend class Ledger;
  class Impl;
  /// Shared with the functions that run handlers, while they run.
  std::shared_ptr<Impl> impl_;
};

}  // namespace resourced::client
#pragma GCC visibility pop
