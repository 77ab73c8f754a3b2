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

/// Whether the ledger refuses targets that have been drained, excluded or removed, or have lost a property.
/// The daemon informs the scheduler about them, but perhaps not yet.
bool is_of_targets(int errnum) {
  return errnum == EHOSTDOWN || errnum == EINVAL || errnum == EPERM || errnum == ESTALE;
}

}  // namespace

void Scheduler::schedule() {
  if (!acquired_ || replacement_) return;
  if (std::exchange(judge_, false)) judge_queue();
  if (!std::exchange(try_head_, false)) return;
  while (start_head()) continue;
}

bool Scheduler::start_head() {
  // After a refusal, wait: the change that explains it is on its way.
  if (queue_.empty() || queue_.front().refused_view == view_) return false;
  std::optional<rset::ResourceSet> allocation;
  try {
    allocation = pool_.allocate(queue_.front().id, queue_.front().request, clock_());
    if (!allocation) return false;
  } catch (const Error& error) {
    deny(queue_.front().id, error.what());
  }
  Job head = std::move(queue_.front());
  queue_.pop_front();
  if (allocation) record(std::move(head), *allocation);
  return true;
}

void Scheduler::release(Pool::JobId id) {
  const client::Allocation* const job = settled(id);
  if (job != nullptr && acquired_ && !replacement_) {
    replacement_ = {id, job->resources};
    pool_.release(id);
    while (replacement_->next == 0 && start_head()) continue;
    if (replacement_->next != 0) return;
    pool_.recover(id, std::exchange(replacement_, std::nullopt)->resources);
  }
  release_alone(id);
}

void Scheduler::release_alone(Pool::JobId id) {
  if (ledger_ == nullptr) return finish_release(id);
  ledger_->change({.frees = {{std::to_string(id)}}}, [this, id](const client::Response& answer) {
    if (!answer.ok() && answer.error().errnum() != ENOENT)
      return say({{"error", fmt::format("free: {}: {}", id, answer.error().what())}});
    // An operator may have freed the job meanwhile.
    if (pool_.holds(id)) finish_release(id);
  });
}

void Scheduler::record(Job job, const rset::ResourceSet& allocation) {
  const Pool::JobId id = job.id;
  recording_.emplace(id, Recording{std::move(job), allocation, view_});
  if (ledger_ == nullptr) return on_recorded(id, client::Response("", nullptr, true));
  client::LedgerChange wanted{.allocations = {{std::to_string(id), allocation}}};
  if (allocation.expiration() != WallTime{}) wanted.allocations[0].expiration = allocation.expiration();
  if (replacement_) {
    replacement_->next = id;
    wanted.frees = {{std::to_string(replacement_->ended)}};
  }
  ledger_->change(std::move(wanted), [this, id](const client::Response& answer) { on_recorded(id, answer); });
}

void Scheduler::on_recorded(Pool::JobId id, const client::Response& answer) {
  auto [job, allocation, view] = std::move(recording_.extract(id).mapped());
  std::optional<Replacement> replaced;
  if (replacement_ && replacement_->next == id) replaced.swap(replacement_);
  try_head_ = true;
  if (answer.ok()) {
    if (replaced) finish_release(replaced->ended);
    const client::Allocation* const made = settled(id);  // ranks may differ since it was asked for
    return say_(fmt::format(R"({{"id":{},"R":{}}})", id, (made ? made->resources : allocation).encode()));
  }
  pool_.release(id);
  if (replaced) {  // The daemon may have refused either part, so each is sent alone.
    pool_.recover(replaced->ended, replaced->resources);
    requeue(std::move(job));
    return release_alone(replaced->ended);
  }
  const Error& why = answer.error();
  if (why.errnum() == EEXIST) compare();  // takes the allocation over that has the id
  const bool was_old = is_of_targets(why.errnum()) || (why.errnum() == EBUSY && view != view_);
  // A refusal does not mean that the job can never be satisfied, so it is put aside instead of denied.
  if (!was_old || ++job.refusals == most_refusals) return say({{"id", id}, {"aside", why.what()}});
  job.refused_view = view;
  requeue(std::move(job));
  say({{"id", id}, {"wait", why.what()}});
}

void Scheduler::requeue(Job job) {
  const auto later = std::ranges::find_if(queue_, [&](const Job& other) { return other.id > job.id; });
  queue_.insert(later, std::move(job));
}

Pool::JobId Scheduler::id_of(const client::Ledger::Name& name) {
  const auto& [partition, id] = name;
  Pool::JobId number = first_foreign;
  std::from_chars(id.data(), id.data() + id.size(), number);
  if (partition == partition_ && number < first_foreign && std::to_string(number) == id) return number;
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
    if (replacement_ && id == replacement_->ended) continue;
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
