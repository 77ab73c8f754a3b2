// A scheduler with the policy first come, first served: the head of the queue is allocated as soon as its
// resources are up and free; all other requests wait for it. Input: the callbacks of an acquisition (RFC 28),
// and a line for each command of a user. Output: JSON objects, listed in docs/schedulers.md.
//
// An allocation is recorded in the daemon's ledger before it is printed, and a free before it is answered. So
// the next scheduler after a crash finds in the ledger all that was printed. Where a job that is freed makes
// room for the head of the queue, one transaction frees and allocates. client::Ledger sends changes
// again whose answer was lost, or that the daemon cannot carry out now. An allocation that the ledger refuses
// because targets were drained or removed meanwhile returns to its place in the queue.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "client/acquisition.hpp"
#include "client/ledger.hpp"
#include "core/error.hpp"
#include "core/time.hpp"
#include "docs/examples/fifo_scheduler/pool.hpp"

namespace resourced::fifo {

class Scheduler final : public client::AcquisitionObserver {
 public:
  /// Prints a JSON object on one line, without the newline.
  using Say = std::function<void(std::string_view line)>;
  using Clock = std::function<WallTime()>;

  /// Makes a scheduler of a partition, or of all targets in none.
  Scheduler(Say say, Clock clock, std::string partition = {})
      : say_(std::move(say)), clock_(std::move(clock)), partition_(std::move(partition)) {}
  /// Records allocations in the ledger of the acquisition. Otherwise each change counts as made at once.
  void record_in(client::Ledger& ledger) { ledger_ = &ledger; }

  /// Handles a line of input: a request, `free ID`, `prolong ID SECONDS`, an empty line, or a comment after
  /// `#`.
  void command(std::string_view line);
  /// Allocates to the requests at the head of the queue. Call after the callbacks: one response may cause
  /// several of them, and the state is complete only after the last.
  void schedule();
  /// Whether the head of the queue waits for the change that explains why the ledger has refused it.
  [[nodiscard]] bool is_refused() const { return !queue_.empty() && queue_.front().refused_view == view_; }
  /// Tries the head again. Call when no such change has come for a while.
  void retry() {
    change_view();
    schedule();
  }
  /// Whether an answer of the ledger is due.
  [[nodiscard]] bool is_waiting_for_ledger() const {
    return ledger_ != nullptr && !(ledger_->pending().empty() && ledger_->unknown().empty());
  }
  /// Returns the error that has ended the acquisition.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

  void on_resources(const rset::ResourceSet& resources, const text::IdSet& up) override;
  void on_allocations(const std::vector<client::Allocation>& /*allocations*/) override { compare(); }
  void on_freed(const std::vector<client::Freed>& /*freed*/) override { compare(); }
  void on_changed(const std::vector<client::Allocation>& /*allocations*/) override { compare(); }
  void on_property_remove(std::string_view name, const text::IdSet& ranks) override;
  void on_property_add(std::string_view name, const text::IdSet& ranks) override;
  void on_expiration(WallTime time) override;
  void on_cause(const client::DownCauses& causes) override { causes_ = causes; }
  void on_shrink(const text::IdSet& ranks) override;
  void on_down(const text::IdSet& ranks) override;
  void on_up(const text::IdSet& ranks) override;
  void on_scheduled(const std::vector<client::ScheduledDrain>& drains) override;
  void on_change() override { causes_ = {}; }
  void on_lost(const Error& why) override;
  void on_error(const Error& why) override { error_ = why, acquired_ = false; }

 private:
  /// Ids from here on are those of allocations of other programs.
  static constexpr Pool::JobId first_foreign = Pool::JobId{1} << 63U;

  /// Number of refusals of the ledger after which a job does not wait any more.
  static constexpr int most_refusals = 8;

  struct Job {
    Pool::JobId id;
    Request request;
    /// Number of refusals of an allocation for this job, and the view at the last one.
    int refusals = 0;
    std::optional<std::uint64_t> refused_view = std::nullopt;
  };

  void say(const nlohmann::ordered_json& object);
  void submit(std::string_view line);
  void free(std::string_view argument);
  void prolong(std::string_view arguments);
  void deny(Pool::JobId id, std::string_view why);
  /// Allocates to the head of the queue, or denies it. Returns false if the head has to wait.
  bool start_head();
  void record(Job job, const rset::ResourceSet& allocation);
  void on_recorded(Pool::JobId id, const client::Response& answer);
  /// Frees a job, and allocates to the head of the queue in the same transaction if it fits then. Throws
  /// Error EALREADY while another change of the job has no answer.
  void release(Pool::JobId id);
  void release_alone(Pool::JobId id);
  void finish_release(Pool::JobId id);
  /// Returns the allocation of a job in the ledger; null if it has none, or while a change of it has no
  /// answer.
  [[nodiscard]] const client::Allocation* settled(Pool::JobId id) const;
  /// Holds what the ledger lists, and what it has not answered yet. Call after changes of others.
  void compare();
  /// Returns the id of an allocation of the ledger in the pool: that of the job, or for an allocation that is
  /// not of this program, one of foreign_.
  Pool::JobId id_of(const client::Ledger::Name& name);
  /// Puts a job back into the queue, which is in the order of ids.
  void requeue(Job job);
  /// Call when something of the targets has changed.
  void change_view() {
    ++view_;
    try_head_ = true;
  }
  /// Denies requests that the present inventory could never satisfy.
  void judge_queue();
  [[nodiscard]] std::string reason_to_wait() const;

  Say say_;
  Clock clock_;
  Pool pool_;
  client::Ledger* ledger_ = nullptr;
  std::string partition_;
  std::deque<Job> queue_;
  /// Allocations without an answer of the ledger.
  struct Recording {
    Job job;
    rset::ResourceSet allocation;
    std::uint64_t view;
  };
  std::map<Pool::JobId, Recording> recording_;
  /// A transaction without an answer that frees a job for the next one. The pool holds what the next one gets
  /// of it, and nothing else is allocated meanwhile, as the transaction may be refused.
  struct Replacement {
    Pool::JobId ended;
    rset::ResourceSet resources;
    /// 0 as long as the transaction is not sent.
    Pool::JobId next = 0;
  };
  std::optional<Replacement> replacement_;
  /// Allocations of the ledger that are not of this program, by partition and id: of other partitions, which
  /// have ids of their own, or with other ids. They hold their resources, and are left alone.
  std::map<client::Ledger::Name, Pool::JobId> foreign_;
  Pool::JobId last_id_ = 0;
  /// Whether the daemon is connected; false before the first response, after a loss, when the view may be
  /// outdated, and after the end.
  bool acquired_ = false;
  /// Flags set by events that may let the head be allocated, and by changes of the inventory that require
  /// judge_queue().
  bool try_head_ = false;
  bool judge_ = false;
  /// Counts changes of the targets.
  std::uint64_t view_ = 0;
  /// Why targets went down, until the end of the response that tells it.
  client::DownCauses causes_;
  std::optional<Error> error_;
};

}  // namespace resourced::fifo
