// Follows the journal of the enclosing instance (RFC 28, RFC 44) and reports the changes that it requires
// here. It retries for ever after a lost connection, and if the parent refuses, sends invalid messages or is
// the wrong instance; until it answers again, its last known state holds. The connection to the daemon's loop
// is in parent_link.hpp: time is an argument here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/backoff.hpp"
#include "client/connection.hpp"
#include "core/nodes/parent.hpp"
#include "core/time.hpp"
#include "daemon/peers/limits.hpp"
#include "proto/topics/journal.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::instance {

class ParentFollower {
 public:
  using Tell = std::function<void(const nodes::ParentChange&)>;

  /// Sends the first request at once. Connection and mirror must outlive the follower and must not be used by
  /// others meanwhile.
  ParentFollower(client::Connection& connection, nodes::ParentMirror& mirror, SteadyTime now, Tell tell);
  ~ParentFollower();
  ParentFollower(const ParentFollower&) = delete;
  ParentFollower& operator=(const ParentFollower&) = delete;

  /// Processes what the connection has received.
  void process(SteadyTime now);
  /// Sends requests, warnings and changes that are due.
  void tick(SteadyTime now);
  /// Returns when tick() has something to do if nothing is received until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  /// Whether history and status have been received, and new events are applied when they arrive.
  [[nodiscard]] bool synced() const noexcept { return synced_at_.has_value(); }

 private:
  using RequestId = client::Connection::RequestId;

  using Handler = void (ParentFollower::*)(const client::Response&);

  void ask();
  [[nodiscard]] RequestId send(std::string_view topic, Handler handler, const client::SendOptions& options);
  void on_batch(const client::Response& response);
  void on_status(const client::Response& response);
  void take_in(const proto::topics::JournalBatch& batch);
  void history_is_through();
  void tell();
  /// Drops the requests, and sends them again after a pause.
  void fail(std::string_view why);
  void drop_requests();

  client::Connection& connection_;
  nodes::ParentMirror& mirror_;
  Tell tell_;
  SteadyTime now_;
  std::optional<RequestId> journal_;
  std::optional<RequestId> status_;
  /// Events that were received while the request for `resource.status` is pending. The status has the present
  /// state, because the history may be truncated and does not show which drains a restart of the parent
  /// dropped.
  std::vector<module::Event> held_;
  std::optional<SteadyTime> synced_at_;

  client::Backoff pause_;
  std::optional<SteadyTime> ask_at_;
  /// Time to warn that the parent does not answer.
  std::optional<SteadyTime> miss_at_;
  std::string last_failure_;
  peers::RateLimit successes_;
  peers::RateLimit failures_;
  peers::RateLimit defects_;
};

}  // namespace resourced::daemon::instance
