// resource.leader, resource.cluster and resource.hand-over, and the role of this daemon in a cluster, if any.
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
#include "daemon/service/deferral.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/topics.hpp"
#include "proto/message.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::daemon::service {

/// The membership of this daemon in a cluster.
class Membership {
 public:
  using TakeRoster = std::function<void(const std::variant<::resourced::cluster::Roster, Error>&)>;

  Membership() = default;
  virtual ~Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  Membership(Membership&&) = delete;
  Membership& operator=(Membership&&) = delete;

  /// Asks etcd for the members. The loop calls `take` with the answer.
  virtual void ask_roster(TakeRoster take) = 0;
};

/// The membership of a leader.
class Leadership : public Membership {
 public:
  /// Returns the name of this daemon.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual proto::topics::Term term() const = 0;
  /// Returns whether this daemon may still serve. Once it is false, another daemon may have taken over:
  /// requests are dropped, and only messages that wait for their clients are sent.
  [[nodiscard]] virtual bool may_serve() const = 0;
  /// Ends the service after the answers that are on their way, and lets this member lead.
  virtual void hand_over(const std::string& successor) = 0;
  /// Returns why changes are refused now: earlier ones are not committed. Unset while changes are committed.
  [[nodiscard]] virtual std::optional<std::string> stalled() const = 0;
  /// Stores the holders of resources for the next leader.
  virtual void keep_holders(const std::vector<module::PartitionHolder>& /*holders*/) {}
};

/// The membership of a standby, which another daemon leads.
class Following : public Membership {
 public:
  struct Standing {
    /// `standby`, and the leader, or why the leader is not known.
    std::string text;
    /// The standby was in touch with etcd within the time of its lease, so its events are recent.
    bool is_in_touch = false;
    /// Groups of settings in which the standby's files differ from the leader's, as far as known.
    std::vector<std::string> differs = {};

    /// Returns the text with the files that differ, for people.
    [[nodiscard]] std::string line() const;
  };
  [[nodiscard]] virtual Standing standing() const = 0;
};

class ClusterTopics {
 public:
  /// Maximum number of requests that wait for etcd at the same time: of one uid or key, and of all.
  static constexpr std::size_t most_of_one = 4;
  static constexpr std::size_t most = 64;

  /// A daemon for which both `leadership` and `following` are null is in no cluster.
  ClusterTopics(Requests& requests, Leadership* leadership, Following* following, Deferral& deferral)
      : requests_(requests), leadership_(leadership), following_(following), deferral_(deferral) {}

  /// Makes this daemon a standby, at its start.
  void stand_by(Following& following) noexcept { following_ = &following; }
  /// Makes a standby the leader. Its questions to etcd are asked again.
  void lead(Leadership& leadership);
  [[nodiscard]] bool leads() const noexcept { return leadership_ != nullptr; }
  [[nodiscard]] bool may_serve() const { return leadership_ == nullptr || leadership_->may_serve(); }
  /// Returns Leadership::stalled() of a leader.
  [[nodiscard]] std::optional<std::string> stalled() const {
    return leads() ? leadership_->stalled() : std::nullopt;
  }
  /// Returns whether the holders of resources are stored for the next leader.
  [[nodiscard]] bool keeps_holders() const noexcept { return leads() && !is_shut_down_; }
  /// Stores the holders unless they are the same as at the last call.
  void keep_holders(std::vector<module::PartitionHolder> holders);
  /// Stops storing holders: the releases at this daemon's end must not end the reservations of the holders.
  void shut_down() noexcept { is_shut_down_ = true; }
  /// Returns the term of a leader.
  [[nodiscard]] std::optional<proto::topics::Term> term() const;
  [[nodiscard]] bool follows() const noexcept { return following_ != nullptr; }
  /// Returns Following::Standing::differs of a standby; empty for other daemons.
  [[nodiscard]] std::vector<std::string> differs() const;
  enum class Role { alone, leader, standby, no_majority };
  [[nodiscard]] Role role() const;
  /// Throws Error EHOSTUNREACH with the leader if a standby does not serve requests with this need.
  void check(Needs needs) const;
  /// Throws the same Error if a standby, whose last event is `last`, does not have this event yet.
  void check_event(log::Sequence event, log::Sequence last) const;
  /// Returns the role of this daemon as a line, for resource.ready; unset for a daemon in no cluster. Throws
  /// Error EAGAIN for a standby whose events may be old.
  [[nodiscard]] std::optional<std::string> standing() const;

  void leader(const Call& call);
  void members(const Call& call);
  void hand_over(const Call& call);
  /// Called when a request has ended.
  void release(proto::RequestKey key);

 private:
  using Finish = std::function<void(proto::RequestKey, const ::resourced::cluster::Roster&)>;
  struct Question {
    std::uint64_t number = 0;
    proto::RequestKey key;
    std::string who;
    Finish finish;
  };

  /// Keeps a request until the members are known.
  void ask(const Call& call, Finish finish);
  void send(std::uint64_t number);
  void take(std::uint64_t number, const std::variant<::resourced::cluster::Roster, Error>& answer);
  [[nodiscard]] Membership* membership() const noexcept {
    return leads() ? static_cast<Membership*>(leadership_) : following_;
  }

  Requests& requests_;
  Leadership* leadership_;
  Following* following_;
  Deferral& deferral_;
  bool is_shut_down_ = false;
  /// The holders that keep_holders() was last called with.
  std::optional<std::vector<module::PartitionHolder>> kept_holders_;
  std::vector<Question> questions_;
  std::uint64_t last_number_ = 0;
};

}  // namespace resourced::daemon::service
