// The decisions of the scheduler; messages.cpp has its input and output.
#include "docs/examples/fifo_scheduler/scheduler.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace resourced::fifo {

namespace {

/// Number of refusals of the ledger after which a job does not wait any more.
constexpr int most_refusals = 8;

/// Whether the ledger refuses targets that have been drained, excluded or removed, or have lost a property.
/// The daemon informs the scheduler about them, but perhaps not yet.
bool is_of_targets(int errnum) {
  return errnum == EHOSTDOWN || errnum == EINVAL || errnum == EPERM || errnum == ESTALE;
}

}  // namespace

void Scheduler::release(Pool::JobId id) {
  const auto fail = [this, id](const Error& why) {
    say({{"error", fmt::format("free: {}: {}", id, why.what())}});
  };
  const auto finish = [this, id] {
    // An operator may have freed the job meanwhile.
    if (pool_.holds(id)) finish_release(id);
    schedule();
  };
  if (ledger_ == nullptr) return finish();
  try {
    ledger_->change({.frees = {{std::to_string(id)}}}, [fail, finish](const client::Response& answer) {
      if (!answer.ok() && answer.error().errnum() != ENOENT) return fail(answer.error());
      finish();
    });
  } catch (const Error& unanswered) {
    fail(unanswered);
  }
}

void Scheduler::finish_release(Pool::JobId id) {
  pool_.release(id);
  if (id < first_foreign) say({{"free", id}});
  try_head_ = true;
}

void Scheduler::schedule() {
  if (!acquired_) return;
  if (std::exchange(judge_, false)) judge_queue();
  if (!std::exchange(try_head_, false)) return;
  while (!queue_.empty()) {
    Job& head = queue_.front();
    // Wait: the change that explains the refusal is on its way.
    if (head.refused_view == view_) return;
    try {
      std::optional<rset::ResourceSet> allocation = pool_.allocate(head.id, head.request, clock_());
      if (!allocation) return;
      record(std::move(head), *allocation);
    } catch (const Error& error) {
      deny(head.id, error.what());
    }
    queue_.pop_front();
  }
}

void Scheduler::record(Job job, const rset::ResourceSet& allocation) {
  const Pool::JobId id = job.id;
  recording_.emplace(id, Recording{std::move(job), allocation, view_});
  if (ledger_ == nullptr) return on_recorded(id, client::Response("", nullptr, true));
  client::Allocation wanted{std::to_string(id), allocation};
  if (allocation.expiration() != WallTime{}) wanted.expiration = allocation.expiration();
  ledger_->change({.allocations = {std::move(wanted)}},
                  [this, id](const client::Response& answer) { on_recorded(id, answer); });
}

void Scheduler::on_recorded(Pool::JobId id, const client::Response& answer) {
  auto [job, allocation, view] = std::move(recording_.extract(id).mapped());
  if (answer.ok()) return say_(fmt::format(R"({{"id":{},"R":{}}})", id, allocation.encode()));
  pool_.release(id);
  try_head_ = true;
  const int errnum = answer.error().errnum();
  const char* const why = answer.error().what();
  const bool was_old = is_of_targets(errnum) || (errnum == EBUSY && view != view_);
  // No refusal by the ledger means that the job can never be satisfied, so it is put aside, and not denied.
  if (!was_old || ++job.refusals == most_refusals) return say({{"id", id}, {"aside", why}});
  job.refused_view = view;
  requeue(std::move(job));
  say({{"id", id}, {"wait", why}});
}

void Scheduler::requeue(Job job) {
  const auto later = std::ranges::find_if(queue_, [&](const Job& other) { return other.id > job.id; });
  queue_.insert(later, std::move(job));
}

Pool::JobId Scheduler::id_of(const client::Ledger::Name& name) {
  const auto& [partition, id] = name;
  Pool::JobId number = 0;
  const char* const end = id.data() + id.size();
  const auto [stopped, failure] = std::from_chars(id.data(), end, number);
  if (partition == partition_ && failure == std::errc() && stopped == end && number < first_foreign)
    return number;
  return foreign_.try_emplace(name, first_foreign + foreign_.size()).first->second;
}

// After its start a scheduler takes over the allocations of an earlier one. Later, an operator or another
// scheduler may have freed or changed some.
void Scheduler::compare() {
  std::set<Pool::JobId> there;
  for (const auto& [name, entry] : ledger_->list()) {
    const rset::ResourceSet& resources = entry.allocation.resources;
    const Pool::JobId id = id_of(name);
    const bool is_own = id < first_foreign;
    there.insert(id);
    if (is_own) last_id_ = std::max(last_id_, id);
    if (!pool_.release(id) && is_own)
      say_(fmt::format(R"({{"recovered":{},"R":{}}})", id, resources.encode()));
    pool_.recover(id, resources);
  }
  for (const Pool::JobId id : pool_.jobs())
    if (!there.contains(id) && !recording_.contains(id)) finish_release(id);
  try_head_ = true;
}

void Scheduler::judge_queue() {
  std::erase_if(queue_, [this](const Job& job) {
    const std::string denial = pool_.denial(job.request);
    if (!denial.empty()) deny(job.id, denial);
    return !denial.empty();
  });
}

}  // namespace resourced::fifo
