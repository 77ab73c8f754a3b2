// The search for the leader of a cluster: all daemons are asked (resource.leader), each over a link of its
// own, repeatedly with growing pauses, until one answers that it leads. If one leads another cluster, or is
// in none, the search fails: each change would go to one of the two at random. So after the first answer the
// search waits a moment for the others, unless it is of the cluster of the last leader.
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

/// A connection to the leader.
struct FoundLeader {
  std::unique_ptr<Link> link;
  proto::topics::Term term;
};

class LeaderSearch {
 public:
  struct Context {
    Link::Context& links;
    const ConnectionOptions& options;
    const std::optional<proto::KeyFile>& keys;
    Wakeup& wakeup;
    Timers& timers;
    Random& random;
  };
  /// Starts to ask. The last leader was of `former`, so a leader of an earlier term is ignored. Objects that
  /// `context` refers to must outlive the search.
  LeaderSearch(Context context, const std::vector<std::string>& places, proto::topics::Term former);
  ~LeaderSearch();
  LeaderSearch(const LeaderSearch&) = delete;
  LeaderSearch& operator=(const LeaderSearch&) = delete;

  /// Handles one message or event of a link. Returns false if there is none.
  bool step();
  /// Whether step() has something to do. Must be the last call before the caller waits for the descriptors.
  [[nodiscard]] bool ready();
  /// Returns the leader once it is found, and only once.
  [[nodiscard]] std::optional<FoundLeader> take();
  /// Whether the search has failed: every endpoint refuses this client in a way that does not change by
  /// itself, or two lead different clusters.
  [[nodiscard]] bool is_over() const;
  /// Returns why the search has failed: the two endpoints that lead different clusters; or `cannot reach the
  /// daemon ...`, with the reason of an endpoint that refuses this client, if one does.
  [[nodiscard]] Error why(const std::string& uri) const;
  /// Returns what each endpoint has answered last: `URI: WHY; URI: no answer`. Empty if none has answered.
  [[nodiscard]] std::string reasons() const;

 private:
  /// The answer of a daemon that leads.
  struct Claim {
    proto::topics::Term term;
    bool is_in_no_cluster = false;
  };
  struct Place {
    Place(std::string where, BackoffLimits limits) : uri(std::move(where)), pause(limits) {}
    std::string uri;
    std::unique_ptr<Link> link;
    /// Whether the question was sent and is not answered yet.
    bool is_asked = false;
    /// Whether the daemon has answered in this search, or cannot be asked now.
    bool is_known = false;
    std::optional<Claim> claim;
    /// Timer of the end of the attempt or of the pause.
    std::optional<Timers::Id> timer;
    Backoff pause;
    ConnectFailure failure = ConnectFailure::unreachable;
    bool has_refused = false;
    /// Why the daemon does not lead, as it has answered; empty if it has not.
    std::string reason;
  };

  void connect(Place& place);
  void ask(Place& place);
  void take_answer(Place& place, const proto::Message& answer);
  void on_event(Place& place, Link::Event event);
  void fail(Place& place, ConnectFailure failure);
  void pause(Place& place);
  void tell_later();
  void set_timer(Place& place, Milliseconds delay, void (LeaderSearch::*work)(Place&));
  void end_attempt(Place& place) { fail(place, ConnectFailure::timed_out); }
  void go_on(Place& place);
  /// Returns, of those that lead, the endpoint of the highest epoch; null if none does.
  [[nodiscard]] Place* best() const;
  /// Whether the search is over because an endpoint leads.
  [[nodiscard]] bool is_settled() const;
  /// Returns the error about two endpoints that do not lead the same cluster, if their answers show this.
  [[nodiscard]] std::optional<Error> conflict() const;
  [[nodiscard]] static bool are_of_one(const Claim& one, const Claim& other);

  Context context_;
  proto::topics::Term former_;
  std::vector<std::unique_ptr<Place>> places_;
  /// Timer for the other answers; it runs from the first answer of an endpoint that leads.
  std::optional<Timers::Id> others_timer_;
  bool are_others_late_ = false;
  /// Timer of the next call of on_no_leader, and the reasons of the last one.
  std::optional<Timers::Id> tell_timer_;
  std::string told_;
};

}  // namespace resourced::client
