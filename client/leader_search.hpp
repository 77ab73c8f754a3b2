// The search for the daemon of a cluster that leads: all are asked at once (resource.leader), each over a
// link of its own, again and again with growing pauses, until one answers that it leads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/backoff.hpp"
#include "client/connection.hpp"
#include "client/link.hpp"
#include "client/reachability.hpp"
#include "client/wakeup.hpp"
#include "proto/key_file.hpp"
#include "proto/message.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::client {

/// A connection to the daemon that leads.
struct FoundLeader {
  std::unique_ptr<Link> link;
  proto::topics::Term term;
};

class LeaderSearch {
 public:
  struct Context {
    /// One for each place.
    const std::vector<Link::ContextPtr>& links;
    const ConnectionOptions& options;
    const std::optional<proto::KeyFile>& keys;
    Wakeup& wakeup;
    Timers& timers;
    Random& random;
  };
  /// Begins to ask. The last leader was of `former`, so one of an earlier term is none. What `context` refers
  /// to must outlive this.
  LeaderSearch(Context context, const std::vector<std::string>& places, proto::topics::Term former);
  ~LeaderSearch();
  LeaderSearch(const LeaderSearch&) = delete;
  LeaderSearch& operator=(const LeaderSearch&) = delete;

  /// Handles one message or event of a link; false if there is none.
  bool step();
  /// True if step() has something to do. Must be the last call before the caller waits for the descriptors.
  [[nodiscard]] bool ready();
  /// The leader, once.
  [[nodiscard]] std::optional<FoundLeader> take();
  /// Every place refuses this client in a way that does not change by itself.
  [[nodiscard]] bool is_over() const noexcept;
  /// `cannot reach the daemon ...`, with the reason of a place that refuses this client, if one does.
  [[nodiscard]] Error why(const std::string& uri) const;

 private:
  struct Place {
    Place(std::string where, Link::Context& context, BackoffLimits limits)
        : uri(std::move(where)), links(context), pause(limits) {}
    std::string uri;
    Link::Context& links;
    std::unique_ptr<Link> link;
    /// The question is sent, and not answered.
    bool is_asked = false;
    /// The end of the attempt or of the pause.
    std::optional<Timers::Id> timer;
    Backoff pause;
    ConnectFailure failure = ConnectFailure::unreachable;
    bool has_refused = false;
  };

  void connect(Place& place);
  void ask(Place& place);
  void take_answer(Place& place, const proto::Message& answer);
  void on_event(Place& place, Link::Event event);
  void fail(Place& place, ConnectFailure failure);
  void pause(Place& place);
  void set_timer(Place& place, Milliseconds delay, void (LeaderSearch::*work)(Place&));
  void end_attempt(Place& place) { fail(place, ConnectFailure::timed_out); }
  void go_on(Place& place);

  Context context_;
  proto::topics::Term former_;
  std::vector<std::unique_ptr<Place>> places_;
  std::optional<FoundLeader> found_;
};

}  // namespace resourced::client
