// resource.wait: requests that are answered when their targets are idle or ready. After a change of the state
// they are looked at a few at a time, so that many of them do not delay other clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/module/waits.hpp"
#include "core/text/idset.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/job_manager.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

class WaitTopics {
 public:
  /// Maximum number of requests that wait at the same time: of one uid or key, and of all.
  static constexpr std::size_t most_of_one = 1024;
  static constexpr std::size_t most = 4096;
  /// Number of requests that are checked before other clients have their turn.
  static constexpr std::size_t most_at_once = 64;

  WaitTopics(const Executor& executor, Requests& requests, Deferral& deferral)
      : executor_(executor), requests_(requests), deferral_(deferral) {}

  void wait(const Call& call);

  /// Called when the state may have changed: checks the requests later.
  void on_changed();
  /// Called when another inventory replaces the present one: the requests that wait now are refused later, as
  /// their ranks may mean other targets.
  void on_replaced() noexcept { ++inventories_; }
  /// Called when a scheduler has come or gone.
  void on_acquisition();
  /// See Service::set_job_manager(), Service::on_jobs() and Service::awaits_jobs().
  void set_job_manager(JobManager* jobs);
  void on_jobs(JobAnswer answer);
  [[nodiscard]] bool awaits_jobs(const text::IdSet& targets);
  /// Removes a request that has ended.
  void release(proto::RequestKey key);

 private:
  struct Waiter {
    module::Wait wait;
    /// The uid or key of the client.
    std::string who;
    /// Value of inventories_ when the request came.
    std::uint64_t inventory = 0;
    bool depends_on_jobs = false;
    /// Call of follow() for which the job manager's answer must be new enough, if the wait depends on jobs.
    std::uint64_t inquiry = 0;
    /// The allocations of its targets were reported once: if they are missing later, the request waits.
    bool is_accepted = false;
  };
  using Waiters = std::map<proto::RequestKey, Waiter>;

  void add(proto::RequestKey key, const module::Wait& wait, const std::string& who);
  void remove(Waiters::iterator position);
  [[nodiscard]] module::WaitedState state() const;
  /// Returns whether a condition depends on the job manager of an instance.
  [[nodiscard]] bool depends_on_jobs(const module::Wait& wait) const;
  [[nodiscard]] Error unreported(const text::IdSet& targets) const;
  /// Asks the job manager for all requests that depend on it.
  void ask_jobs();
  void look_later();
  void look();
  /// Ends a request whose condition is met or cannot be met any more.
  void judge(Waiters::iterator position, const module::WaitedState& state);

  const Executor& executor_;
  Requests& requests_;
  Deferral& deferral_;
  Waiters waits_;
  std::map<std::string, std::size_t> counts_;
  /// The request that is checked next, and how many are still to be checked since the last change.
  proto::RequestKey next_{};
  std::size_t unseen_ = 0;
  bool is_due_ = false;
  /// Number of replacements of the inventory.
  std::uint64_t inventories_ = 0;
  std::uint64_t reported_version_ = 0;
  /// Null if there is no job manager.
  JobManager* jobs_ = nullptr;
  JobAnswer jobs_answer_;
  /// Number of requests that depend on the job manager, and all their targets, once these are needed.
  std::size_t asking_ = 0;
  std::optional<text::IdSet> awaited_;
};

}  // namespace resourced::daemon::service
