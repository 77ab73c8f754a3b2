// The log of a daemon that leads a cluster: an event is durable once etcd has it. The store, which is the
// daemon's replica, gets it then, and answers questions about the history.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/module/reservations.hpp"
#include "core/time.hpp"
#include "daemon/log/etcd/coordinator.hpp"
#include "daemon/log/etcd/credentials.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/log/store_copy.hpp"

namespace resourced::daemon::log::etcd {

/// Limits at which a leader refuses changes, and at which it gives up.
struct LogLimits {
  /// Maximum number and bytes of the events that wait for etcd, and as many for the store.
  std::size_t most_events = 65536;
  std::size_t most_bytes = std::size_t{64} << 20;
  /// Longest time of a commit before changes are refused. Etcd commits within milliseconds; a second is more
  /// than a busy disk takes.
  Seconds longest_commit{1};
  /// Longest time without progress of the store before changes are refused, and before another member should
  /// lead.
  Seconds longest_store{5};
  Seconds longest_hang{20};
};

class LeaderLog final : public log::EventLog {
 public:
  struct Callbacks {
    /// Called when etcd has this event and all before it.
    std::function<void(log::Sequence)> committed;
    /// The member has lost leadership, for this reason. Events that are not committed may be in the log or
    /// not.
    std::function<void(const std::string&)> deposed;
  };
  /// Makes a copy of the store of at most this many bytes, and passes it on from the loop.
  using CopyStore =
      std::function<void(std::size_t, std::function<void(std::variant<log::CopiedStore, Error>)>)>;
  /// `member` leads, and `store` has all events of the log. Both must outlive this object. Without
  /// `copy_store` other members get no snapshots.
  LeaderLog(std::unique_ptr<Runtime> runtime, Member& member, log::EventLog& store,
            CopyStore copy_store = nullptr, LogLimits limits = {});

  void start(Callbacks callbacks);
  /// The store has this event and all before it.
  void on_stored(log::Sequence last);
  /// Commits what waits and lets another member lead, `successor` if one is named. Calls `done`, and
  /// `deposed` no more. Nothing may be appended from now on.
  void finish(std::function<void()> done, std::optional<std::string> successor = std::nullopt);
  /// The holders that the previous leader kept in etcd. None, with a line of the daemon's log, if etcd has a
  /// text that cannot be read.
  [[nodiscard]] std::vector<module::PartitionHolder> former_holders() const;
  /// Keeps the holders for the next leader (Member::keep_holders), in the commit of the last event if it
  /// waits for one: a step that changes the holders by an event is followed by this call.
  void keep_holders(const std::vector<module::PartitionHolder>& holders);
  /// Uses these credentials for etcd from the next request on.
  void set_credentials(const Credentials& credentials) {
    coordinator_.runtime().set_credentials(credentials);
  }
  /// Same as Coordinator::ask_roster().
  void ask_roster(Coordinator::TakeRoster take) { coordinator_.ask_roster(std::move(take)); }
  /// Whether no other member can lead now. False after the process was paused for too long, until `deposed`
  /// is called.
  [[nodiscard]] bool may_serve() const;
  /// Why a change should be refused: etcd or the store has not confirmed the last commit for some time, or
  /// many events wait for them.
  [[nodiscard]] std::optional<std::string> stalled() const;
  [[nodiscard]] const std::string& name() const noexcept { return coordinator_.member().name(); }
  [[nodiscard]] const std::string& cluster() const noexcept { return coordinator_.member().cluster(); }
  [[nodiscard]] ::resourced::cluster::Revision epoch() const noexcept {
    return coordinator_.member().epoch();
  }

  [[nodiscard]] log::Sequence last_sequence() const noexcept override { return store_.last_sequence(); }
  [[nodiscard]] bool is_numbered() const noexcept override { return true; }
  [[nodiscard]] WallTime last_timestamp() const noexcept override { return store_.last_timestamp(); }
  void append(log::Record record) override;
  /// Appends records that go into one commit.
  void append_all(std::vector<log::Record> records) override;
  void ask(log::Question question) override;
  [[nodiscard]] bool wants_snapshot() const noexcept override { return store_.wants_snapshot(); }
  [[nodiscard]] Counters counters() const override {
    Counters counters = counters_;
    counters.log_bytes = store_.counters().log_bytes;
    return counters;
  }

 private:
  /// Events that are committed together, so that a member has all or none of them.
  struct Step {
    std::vector<log::Record> records;
    /// The records as lines for etcd.
    std::string text{};
    std::size_t bytes = 0;
    /// Same as cluster::Batch::holders.
    std::optional<std::string> holders{};
  };
  /// Number and bytes of events that wait.
  struct Load {
    std::size_t events = 0;
    std::size_t bytes = 0;
    void add(const Load& other) noexcept;
    void remove(const Load& other) noexcept;
    [[nodiscard]] bool is_beyond(const LogLimits& limits) const noexcept;
  };

  void watch();
  void commit_soon();
  void commit();
  void on_committed(log::Sequence last);
  [[nodiscard]] std::function<void(log::Past)> while_serving(std::function<void(log::Past)> answer) const;
  void make_snapshot();
  void on_snapshot(std::variant<log::CopiedStore, Error> made);

  log::EventLog& store_;
  const LogLimits limits_;
  Callbacks callbacks_;
  std::function<void()> finished_;
  std::optional<std::string> successor_;
  /// Steps that were not given to the member yet.
  std::deque<Step> queue_;
  Load waiting_;
  /// Records that the member commits now.
  std::vector<log::Record> under_way_;
  Load under_way_load_;
  BootTime sent_at_{};
  bool is_posted_ = false;
  log::Sequence committed_;
  log::Sequence stored_;
  /// Commits that the store does not have yet, each by its last event.
  std::deque<std::pair<log::Sequence, Load>> unstored_;
  Load unstored_load_;
  /// The time at which the store last had something new, or had all events.
  BootTime stored_at_{};
  bool is_refused_ = false;
  /// Why this member lets another one lead; empty if it does not.
  std::string gives_up_;
  /// Questions, each with the event that the store must have before the question is asked.
  std::deque<std::pair<log::Sequence, log::Question>> questions_;
  Counters counters_;
  CopyStore copy_store_;
  /// Why the last snapshot was not made; empty if it was.
  std::string snapshot_failure_;
  /// Declared last, as its runtime calls functions of this object.
  Coordinator coordinator_;
};

}  // namespace resourced::daemon::log::etcd
