// The implementation of a connection: the requests that wait to be sent or answered, and the link that sends
// them. See connection.hpp for what callers may rely on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <unistd.h>

#include "client/background.hpp"
#include "client/backoff.hpp"
#include "client/connection.hpp"
#include "client/leader_search.hpp"
#include "client/link.hpp"
#include "client/reachability.hpp"
#include "client/wakeup.hpp"
#include "core/error.hpp"
#include "proto/key_file.hpp"
#include "proto/matchtag_pool.hpp"
#include "proto/message.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::client {

/// The class is hidden in the shared library (client/package), which is built with GCC: Clang refuses the
/// attribute where the public header declares the class with default visibility.
#if defined(__clang__)
class Connection::Impl {
#else
class [[gnu::visibility("hidden")]] Connection::Impl {
#endif
 public:
  Impl(std::string uri, const ConnectionOptions& options, std::optional<proto::KeyFile> keys);

  [[nodiscard]] const std::string& uri() const noexcept { return uri_; }
  [[nodiscard]] const ConnectionOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool connected() const noexcept { return connected_ && !is_inherited(); }
  [[nodiscard]] bool has_places() const noexcept { return places_.size() > 1; }
  [[nodiscard]] int fd() const noexcept { return wakeup_.fd(); }
  /// The ledgers of the acquisitions of this connection that have not ended.
  [[nodiscard]] const std::shared_ptr<std::set<Ledger*>>& ledgers() const noexcept { return ledgers_; }

  void connect();
  bool follows(proto::topics::Term term);
  RequestId send(proto::Message request, Handler handler, const SendOptions& options);
  void cancel(RequestId id);
  void forget(RequestId id);
  void notify(proto::Message message);
  TimerId after(Milliseconds delay, std::function<void()> f);
  void cancel_timer(TimerId id);

  void process();
  void wait(Milliseconds longest);
  bool run_until(std::optional<Clock::time_point> end);
  void stop() noexcept { stopped_ = true; }
  void close();

  /// Whether this process is a child, by fork, of the process that made the connection. Its descriptors, and
  /// the bytes on their way, belong to that process.
  [[nodiscard]] bool is_inherited() const noexcept { return ::getpid() != process_; }
  /// Throws Error EDEADLK that names the function if a handler is running; ENOTCONN if is_inherited().
  void refuse_inside_handler(const char* function) const;
  /// Throws Error ENOTCONN that begins with the name of a function or topic if is_inherited().
  void refuse_in_child(std::string_view what) const;

 private:
  struct Request {
    proto::Message message;
    Handler handler;
    bool wait_for_daemon = false;
    std::optional<TimerId> timer;
    /// Time-out of the first answer, and its timer from when the request is sent.
    Milliseconds answer_timeout{0};
    std::optional<TimerId> answer_timer;
    /// Whether the request was sent and has a matchtag.
    bool sent = false;
    /// Number of times that the connection was lost while the daemon had the request.
    unsigned losses = 0;
    /// In a cluster: why the daemon has refused to carry it out, and the time of the first refusal. It is
    /// sent again.
    std::optional<Error> refusal;
    Clock::time_point refused{};
    /// Set once the request has failed: only the call of its handler remains.
    std::optional<Error> failure;
  };
  using RequestPtr = std::shared_ptr<Request>;

  /// A message that waits to be sent: a request, or a message that gets no response.
  struct Outgoing {
    RequestId id = 0;
    proto::Message message;
  };

  /// Sends what tells the daemon that this client closes, and lets it leave within the linger time.
  void say_goodbye();
  /// Handles one message, event, timer or failure, or sends a message. Returns false if there was none.
  bool step();
  /// Runs the function of a timer whose time has come. Returns false if there is none.
  bool run_timer();
  bool deliver_failure();
  void dispatch(proto::Message message);
  void on_event(Link::Event event);
  /// Sends the first of outgoing_. Returns false if that is empty or there is no room.
  bool flush_one();
  void flush();
  [[nodiscard]] bool may_flush() const noexcept;

  /// Starts a link. Throws Error if no socket can be made.
  void start_link();
  void connect_places();
  void start_search();
  /// Continues once the search has found the leader, or every endpoint refuses this client.
  void end_search();
  /// Keeps a request that a daemon of a cluster has refused because it cannot carry it out now, to send it
  /// again.
  [[nodiscard]] bool put_off(RequestId id, const Response& response);
  [[nodiscard]] bool send_again_after_refusal(RequestId id, Request& request, const Error& refusal);
  /// Handles the shutdown of the daemon: sends it nothing more, and waits for its last answers.
  void leave();
  /// Holds changes back and sends only questions for a while.
  void hold();
  void end_hold();
  /// Queues these requests again, in the order in which they were made.
  void send_again(const std::vector<RequestId>& ids);
  /// Detects a loss before something is sent. Requests that were sent may have been carried out.
  void look_at_link();
  /// Asks repeatedly, over a link without heartbeats, whether the daemon still leads.
  void probe_link();
  void on_probed(const proto::Message& answer);
  /// Starts a link now or, if that fails, later.
  void try_link();
  void attempt_failed(ConnectFailure failure);
  void link_lost();
  void drop_link();
  void retry_later();
  [[nodiscard]] Error attempt_error() const;
  /// Fails these requests with attempt_error(), once that is known.
  void fail_unreached(const std::vector<RequestId>& ids);
  /// Fails the requests of unexplained_ if the reason is known. Returns false otherwise.
  bool deliver_explanation();
  /// Returns the error of a lost connection; `topic` is that of a request that was sent.
  [[nodiscard]] Error lost_error(std::string_view topic = {}) const;
  [[nodiscard]] Error late_error(const Request& request, Milliseconds timeout) const;

  /// Returns a request that has neither been answered nor failed; null if there is none.
  [[nodiscard]] Request* find_open(RequestId id);
  /// Removes a request, failed or not, so that only the caller can still call its handler.
  RequestPtr take(RequestId id);
  void fail(RequestId id, const Error& error);
  void cancel_timers(Request& request);
  void time_out(RequestId id, Milliseconds timeout);
  /// Sets the alarm for the next timer, or for now if there is something to do. Must be called after each use
  /// of the link, the timers or the failures.
  void rearm();

  const pid_t process_ = ::getpid();
  std::string uri_;
  /// The URIs in uri_.
  std::vector<std::string> places_;
  ConnectionOptions options_;
  std::optional<proto::KeyFile> keys_;
  Wakeup wakeup_;
  Link::ContextPtr context_ = Link::make_context();
  Timers timers_;
  std::unique_ptr<Link> link_;
  /// The search for the leader: with several endpoints, while a link is wanted and none exists.
  std::unique_ptr<LeaderSearch> search_;
  bool is_connecting_ = false;
  /// Why every endpoint refuses this client, if the search has ended so.
  std::optional<Error> refused_;
  /// Term of the last leader.
  proto::topics::Term term_;
  /// Set while only questions are sent: a change was refused, and will be sent again first.
  std::optional<TimerId> hold_timer_;
  Backoff hold_;
  /// Messages that wait for the end of the hold.
  std::deque<Outgoing> held_;
  /// Set while nothing is sent, because the daemon shuts down.
  std::optional<TimerId> leaving_timer_;
  std::optional<TimerId> probe_timer_;
  /// The unanswered question of probe_link().
  struct Probe {
    std::uint32_t tag = 0;
    Clock::time_point sent;
  };
  std::optional<Probe> probe_;
  Random random_{std::random_device{}()};

  /// Every request whose handler may still be called.
  std::unordered_map<RequestId, RequestPtr> requests_;
  std::unordered_map<std::uint32_t, RequestId> by_tag_;
  proto::MatchtagPool tags_;
  std::deque<Outgoing> outgoing_;
  /// The failed requests, in the order in which to call their handlers. Some may be forgotten.
  std::deque<RequestId> failures_;
  RequestId last_id_ = 0;
  /// Id of the last sent request that is no question.
  RequestId last_sent_ = 0;
  /// Services with streams of this client: close() sends each a SERVICE.disconnect.
  std::set<std::string, std::less<>> services_;

  const std::shared_ptr<std::set<Ledger*>> ledgers_ = std::make_shared<std::set<Ledger*>>();

  std::optional<TimerId> connect_timer_;
  std::optional<TimerId> retry_timer_;
  Backoff retry_;
  std::size_t failed_attempts_ = 0;
  ConnectFailure last_failure_ = ConnectFailure::unreachable;
  /// While the reason of a failed attempt is looked for: the requests that fail with it.
  std::optional<Background<Error>> explanation_;
  std::vector<RequestId> unexplained_;
  bool connected_ = false;
  bool losing_ = false;
  bool processing_ = false;
  bool stopped_ = false;
  bool closed_ = false;
};

}  // namespace resourced::client
