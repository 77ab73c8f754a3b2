// resource.leader, resource.cluster and resource.hand-over: this daemon as the leader or a standby of a
// cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/cluster/roster.hpp"
#include "core/error.hpp"
#include "core/module/reservations.hpp"
#include "core/module/snapshot.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/topics.hpp"
#include "proto/message.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::daemon::service {

/// A daemon that leads a cluster.
struct Leadership {
  /// Of this daemon.
  std::string name;
  proto::topics::Term term;
  /// Once this is false another daemon may have taken over: requests are dropped, and nothing is sent that
  /// was not waiting for its client.
  std::function<bool()> may_serve;
  using TakeRoster = std::function<void(const std::variant<::resourced::cluster::Roster, Error>&)>;
  /// Asks etcd for the members.
  std::function<void(TakeRoster)> ask_roster;
  /// Ends the service after the answers that are on their way, and lets this member lead.
  std::function<void(const std::string& successor)> hand_over;
  /// Why nothing can be changed now, as earlier changes are not committed; nothing as long as they are.
  std::function<std::optional<std::string>()> stalled;
  /// Keeps the holders of resources for the next leader. Null where nobody wants them.
  std::function<void(const std::vector<module::PartitionHolder>&)> keep_holders = nullptr;
};

/// A daemon of a cluster that another one leads.
struct Following {
  struct Standing {
    /// `standby`, and who leads, or why it does not know that.
    std::string text;
    /// It has heard of etcd within the time of its lease, so that its events are recent.
    bool is_in_touch = false;
    /// The groups of settings in which its files differ from the leader's, as far as it knows.
    std::vector<std::string> differs = {};

    /// With the files that differ, for people.
    [[nodiscard]] std::string line() const;
  };
  std::function<Standing()> standing;
  /// As Leadership has it.
  std::function<void(Leadership::TakeRoster)> ask_roster;
  /// The states of its log at the start; nothing if the log does not tell them.
  std::optional<module::Snapshot> states;
};

class ClusterTopics {
 public:
  /// Upper bounds of the requests that wait for etcd at the same time: of one uid or key, and of all.
  static constexpr std::size_t most_of_one = 4;
  static constexpr std::size_t most = 64;

  /// A daemon with neither a `leadership` nor `following` is on its own. `post` runs work later, and sends
  /// its answers.
  ClusterTopics(Requests& requests, std::optional<Leadership> leadership,
                const std::optional<Following>& following, std::function<void(std::function<void()>)> post);

  [[nodiscard]] bool leads() const noexcept { return leadership_.has_value(); }
  [[nodiscard]] bool may_serve() const { return !leadership_ || leadership_->may_serve(); }
  /// As Leadership has it.
  [[nodiscard]] std::optional<std::string> stalled() const {
    return leadership_ ? leadership_->stalled() : std::nullopt;
  }
  /// As Leadership has it; nothing for other daemons.
  void keep_holders(const std::vector<module::PartitionHolder>& holders) const {
    if (leadership_ && leadership_->keep_holders) leadership_->keep_holders(holders);
  }
  /// Of a daemon that leads.
  [[nodiscard]] std::optional<proto::topics::Term> term() const;
  [[nodiscard]] bool follows() const noexcept { return standing_ != nullptr; }
  /// As Following::Standing has it; empty for other daemons.
  [[nodiscard]] std::vector<std::string> differs() const;
  enum class Role { alone, leader, standby, no_majority };
  [[nodiscard]] Role role() const;
  /// Throws Error EHOSTUNREACH with the leader, if a standby does not serve what needs this.
  void check(Needs needs) const;
  /// The same, if a standby whose last event is `last` does not have this event yet.
  void check_event(log::Sequence event, log::Sequence last) const;
  /// For resource.ready: what this daemon is, as a line; nothing for one on its own. Throws Error EAGAIN for
  /// a standby whose events may be old.
  [[nodiscard]] std::optional<std::string> standing() const;

  void leader(const Call& call);
  void members(const Call& call);
  void hand_over(const Call& call);
  /// A request has ended.
  void release(proto::RequestKey key);

 private:
  using Finish = std::function<void(proto::RequestKey, const ::resourced::cluster::Roster&)>;
  struct Question {
    std::uint64_t number = 0;
    proto::RequestKey key;
    std::string who;
  };

  /// Keeps a request until the members are known.
  void ask(const Call& call, Finish finish);
  void take(std::uint64_t number, const std::variant<::resourced::cluster::Roster, Error>& answer,
            const Finish& finish);

  Requests& requests_;
  std::optional<Leadership> leadership_;
  /// Set for a standby.
  std::function<Following::Standing()> standing_;
  /// Null for a daemon on its own.
  std::function<void(Leadership::TakeRoster)> ask_roster_;
  std::function<void(std::function<void()>)> post_;
  std::vector<Question> questions_;
  std::uint64_t last_number_ = 0;
};

}  // namespace resourced::daemon::service
