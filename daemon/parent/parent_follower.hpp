// Follows the journal of the enclosing instance (RFC 28, RFC 44) and tells what this one has to do because of
// it. A lost connection is tried again for ever, and so is a parent that refuses, answers nonsense or is
// another instance than it should be; until it is heard again, what is known of it holds. The daemon's loop
// is the business of parent_link.hpp: time is an argument.
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

namespace resourced::daemon::parent {

class ParentFollower {
 public:
  using Tell = std::function<void(const nodes::ParentChange&)>;

  /// Asks at once. Connection and mirror must outlive the follower, and nobody else may use them meanwhile.
  ParentFollower(client::Connection& connection, nodes::ParentMirror& mirror, SteadyTime now, Tell tell);
  ~ParentFollower();
  ParentFollower(const ParentFollower&) = delete;
  ParentFollower& operator=(const ParentFollower&) = delete;

  /// Does what the connection has to do.
  void process(SteadyTime now);
  /// Does what is due.
  void tick(SteadyTime now);
  /// When there is something to do if nothing is heard until then.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  /// The history is through, and the parent is heard.
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
  /// Gives up for now; asked again after a pause.
  void fail(std::string_view why);
  void drop_requests();

  client::Connection& connection_;
  nodes::ParentMirror& mirror_;
  Tell tell_;
  SteadyTime now_;
  std::optional<RequestId> journal_;
  std::optional<RequestId> status_;
  /// The events that came since `resource.status` was asked for, which tells the present state: the history
  /// may be truncated, and does not say which drains a restart of the parent gave up.
  std::vector<module::Event> held_;
  std::optional<SteadyTime> synced_at_;

  client::Backoff pause_;
  std::optional<SteadyTime> ask_at_;
  /// When it is time to say that nobody answers.
  std::optional<SteadyTime> miss_at_;
  std::string last_failure_;
  peers::RateLimit successes_;
  peers::RateLimit failures_;
  peers::RateLimit defects_;
};

}  // namespace resourced::daemon::parent
