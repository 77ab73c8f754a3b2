// resource.wait: requests that are answered when their targets are idle or ready. After a change of the state
// they are looked at a few at a time, so that many of them do not delay other clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/module/waits.hpp"
#include "core/text/idset.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/job_manager.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

class WaitTopics {
 public:
  /// Upper bounds of the requests that wait at the same time: of one uid or key, and of all.
  static constexpr std::size_t most_of_one = 1024;
  static constexpr std::size_t most = 4096;
  /// How many of them are looked at before other clients have their turn.
  static constexpr std::size_t most_at_once = 64;

  /// `post` runs a function from the loop, and then sends its answers.
  WaitTopics(const Executor& executor, Requests& requests, std::function<void(std::function<void()>)> post)
      : executor_(executor), requests_(requests), post_(std::move(post)) {}

  void wait(const Call& call);

  /// The state may have changed: looks at the requests later.
  void on_changed();
  /// Another inventory takes the place of the present one: refuses the requests that wait now later, as their
  /// ranks may mean other targets.
  void on_replaced() noexcept { ++inventories_; }
  /// A scheduler has come or gone.
  void on_acquisition();
  /// As Service::set_job_manager(), Service::on_jobs() and Service::awaits_jobs().
  void set_job_manager(JobManager* jobs);
  void on_jobs(JobAnswer answer);
  [[nodiscard]] bool awaits_jobs(const text::IdSet& targets);
  /// A request has ended.
  void release(proto::RequestKey key);

 private:
  struct Waiter {
    module::Wait wait;
    /// The uid or key of its client.
    std::string who;
    /// As inventories_ was when it came.
    std::uint64_t inventory = 0;
    bool depends_on_jobs = false;
    /// Then an answer of the job manager is required that is new enough for this call of follow().
    std::uint64_t inquiry = 0;
    /// The allocations of its targets were reported once, so it lasts until they are reported again.
    bool is_accepted = false;
  };
  using Waiters = std::map<proto::RequestKey, Waiter>;

  void add(proto::RequestKey key, const module::Wait& wait, const std::string& who);
  void remove(Waiters::iterator position);
  [[nodiscard]] module::WaitedState state() const;
  /// Whether a condition depends on the job manager of an instance.
  [[nodiscard]] bool depends_on_jobs(const module::Wait& wait) const;
  [[nodiscard]] Error unreported(const text::IdSet& targets) const;
  /// Asks the job manager for all requests that depend on it.
  void ask_jobs();
  void look_later();
  void look();
  /// Ends a request that is met or cannot be met any more.
  void judge(Waiters::iterator position, const module::WaitedState& state);

  const Executor& executor_;
  Requests& requests_;
  std::function<void(std::function<void()>)> post_;
  Waiters waits_;
  std::map<std::string, std::size_t> counts_;
  /// The request that is looked at next, and how many are still to be looked at since the last change.
  proto::RequestKey next_{};
  std::size_t unseen_ = 0;
  bool is_due_ = false;
  /// How often the inventory has been replaced.
  std::uint64_t inventories_ = 0;
  std::uint64_t reported_version_ = 0;
  /// Null where there is none.
  JobManager* jobs_ = nullptr;
  JobAnswer jobs_answer_;
  /// How many requests depend on it, and all their targets, once they are needed.
  std::size_t asking_ = 0;
  std::optional<text::IdSet> awaited_;
};

}  // namespace resourced::daemon::service
