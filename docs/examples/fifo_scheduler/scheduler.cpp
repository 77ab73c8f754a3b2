#include "docs/examples/fifo_scheduler/scheduler.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/quote.hpp"

namespace resourced::fifo {

using text::IdSet;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view blanks = " \t\r";
/// Ids from here on are those of allocations of other programs.
constexpr Pool::JobId first_foreign = Pool::JobId{1} << 63U;
/// Number of refusals of the ledger after which a job is denied.
constexpr int most_refusals = 8;

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// Whether the ledger refuses targets that have been drained, excluded or removed, or have lost a property.
/// The daemon informs the scheduler about them, but perhaps not yet.
bool is_of_targets(int errnum) {
  return errnum == EHOSTDOWN || errnum == EINVAL || errnum == EPERM || errnum == ESTALE;
}

/// Whether the daemon has refused a change as it cannot commit now, or does not lead its cluster.
bool may_pass(const Scheduler::Answer& answer) {
  return answer.kind == Scheduler::Answer::Kind::refused &&
         (answer.errnum == EAGAIN || answer.errnum == EHOSTUNREACH);
}

}  // namespace

void Scheduler::say(const Json& object) { say_(object.dump(-1, ' ', false, Json::error_handler_t::replace)); }

void Scheduler::command(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.starts_with('#')) return;
  if (line == "free" || line.starts_with("free "))
    free(trimmed(line.substr(4)));
  else
    submit(line);
}

void Scheduler::submit(std::string_view line) {
  const Pool::JobId id = ++last_id_;
  try {
    Request request = read_request(line);
    const std::string denial = acquired_ ? pool_.denial(request) : "";
    if (!denial.empty()) return deny(id, denial);
    queue_.push_back({id, std::move(request)});
  } catch (const Error& error) {
    return deny(id, error.what());
  }
  try_head_ |= queue_.size() == 1;
  schedule();
  if (!queue_.empty() && queue_.back().id == id) say({{"id", id}, {"wait", reason_to_wait()}});
}

/// Releases a job, or removes a waiting request.
void Scheduler::free(std::string_view argument) {
  Pool::JobId id = 0;
  const char* end = argument.data() + argument.size();
  const auto [stopped, failure] = std::from_chars(argument.data(), end, id);
  const bool is_id = failure == std::errc() && stopped == end;
  const auto has_id = [&](const Job& job) { return job.id == id; };
  if (is_id && id < first_foreign && pool_.holds(id) && !freeing_.contains(id)) return release(id);
  if (!is_id || std::erase_if(queue_, has_id) == 0)
    return say({{"error", fmt::format("free: {} holds nothing and does not wait", text::quoted(argument))}});
  say({{"free", id}});
  try_head_ = true;
  schedule();
}

void Scheduler::release(Pool::JobId id) {
  if (!ledger_) return on_released(id, {});
  freeing_.insert(id);
  to_free_.erase(id);
  ledger_->free(id, [this, id](const Answer& answer) { on_released(id, answer); });
}

void Scheduler::on_released(Pool::JobId id, const Answer& answer) {
  // Wait for the allocations after the next acquire, which show whether the job is still allocated.
  if (answer.kind == Answer::Kind::unknown) return;
  if (may_pass(answer)) {
    to_free_.insert(id);
    return stall();
  }
  // Ignore ENOENT: an operator may have freed the job.
  if (answer.kind == Answer::Kind::refused && answer.errnum != ENOENT) {
    freeing_.erase(id);
    return say({{"error", fmt::format("free: {}: {}", id, answer.why)}});
  }
  finish_release(id);
  schedule();
}

void Scheduler::finish_release(Pool::JobId id) {
  freeing_.erase(id);
  to_free_.erase(id);
  pool_.release(id);
  if (id < first_foreign) say({{"free", id}});
  try_head_ = true;
}

void Scheduler::stall() {
  if (!std::exchange(is_stalled_, true)) ledger_->later([this] { resume(); });
}

void Scheduler::resume() {
  is_stalled_ = false;
  try_head_ = true;
  // Release jobs only while connected: after a loss the next allocations show which still exist.
  if (acquired_) {
    for (const Pool::JobId id : std::exchange(to_free_, {})) release(id);
  }
  schedule();
}

void Scheduler::deny(Pool::JobId id, std::string_view why) { say({{"id", id}, {"denied", why}}); }

void Scheduler::schedule() {
  if (!acquired_ || is_stalled_) return;
  if (std::exchange(judge_, false)) judge_queue();
  if (!std::exchange(try_head_, false)) return;
  while (!queue_.empty()) {
    Job& head = queue_.front();
    // Wait: the change that explains the refusal is on its way.
    if (head.refused_view == view_) return;
    try {
      std::optional<rset::ResourceSet> allocation = pool_.allocate(head.id, head.request, clock_());
      if (!allocation) return;
      record(std::move(head), *std::move(allocation));
    } catch (const Error& error) {
      deny(head.id, error.what());
    }
    queue_.pop_front();
  }
}

void Scheduler::record(Job job, rset::ResourceSet allocation) {
  const Pool::JobId id = job.id;
  const auto& recording =
      recording_.emplace(id, Recording{std::move(job), std::move(allocation), view_}).first->second;
  if (!ledger_) return on_recorded(id, {});
  ledger_->alloc(id, recording.allocation, [this, id](const Answer& answer) { on_recorded(id, answer); });
}

void Scheduler::on_recorded(Pool::JobId id, const Answer& answer) {
  if (answer.kind == Answer::Kind::unknown) return;
  auto recorded = recording_.extract(id);
  if (recorded.empty()) return;
  if (answer.kind == Answer::Kind::done)
    return say_(fmt::format(R"({{"id":{},"R":{}}})", id, recorded.mapped().allocation.encode()));
  pool_.release(id);
  try_head_ = true;
  Job& job = recorded.mapped().job;
  if (may_pass(answer)) {
    if (!std::exchange(job.is_told, true)) say({{"id", id}, {"wait", answer.why}});
    requeue(std::move(job));
    return stall();
  }
  // The job could be satisfied, but its allocation is too large for the ledger.
  if (answer.errnum == EMSGSIZE || answer.errnum == EDQUOT) return say({{"id", id}, {"aside", answer.why}});
  const std::uint64_t view = recorded.mapped().view;
  const bool was_old = is_of_targets(answer.errnum) || (answer.errnum == EBUSY && view != view_);
  if (!was_old || ++job.refusals == most_refusals) return deny(id, answer.why);
  job.refused_view = view;
  requeue(std::move(job));
  say({{"id", id}, {"wait", answer.why}});
}

void Scheduler::requeue(Job job) {
  const auto later = std::ranges::find_if(queue_, [&](const Job& other) { return other.id > job.id; });
  queue_.insert(later, std::move(job));
}

Pool::JobId Scheduler::id_of(const std::string& partition, const std::string& id) {
  Pool::JobId number = 0;
  const char* const end = id.data() + id.size();
  const auto [stopped, failure] = std::from_chars(id.data(), end, number);
  if (partition == partition_ && failure == std::errc() && stopped == end && number < first_foreign)
    return number;
  return foreign_.try_emplace({partition, id}, first_foreign + foreign_.size()).first->second;
}

// An operator, or another scheduler, has freed these: their resources are free for the queue.
void Scheduler::on_freed(const std::vector<client::Freed>& freed) {
  for (const client::Freed& one : freed) {
    const Pool::JobId id = id_of(one.partition.value_or(""), one.id);
    // The answer of the ledger to the alloc or free of this job is on its way.
    if (!pool_.holds(id) || recording_.contains(id) || freeing_.contains(id)) continue;
    if (one.ranks) pool_.release(id, *one.ranks);
    if (!one.ranks || !pool_.holds(id)) finish_release(id);
  }
  try_head_ = true;
}

void Scheduler::on_changed(const std::vector<client::Allocation>& allocations) {
  for (const client::Allocation& allocation : allocations) {
    const Pool::JobId id = id_of(allocation.partition, allocation.id);
    if (recording_.contains(id) || freeing_.contains(id)) continue;
    pool_.release(id);
    pool_.recover(id, allocation.resources);
  }
  try_head_ = true;
}

// Compares this scheduler's jobs with the ledger: after its start it takes over the allocations of an earlier
// one, after a reconnection it learns the results of requests without an answer.
void Scheduler::on_allocations(const std::vector<client::Allocation>& allocations) {
  std::set<Pool::JobId> there;
  for (const client::Allocation& allocation : allocations) {
    const Pool::JobId id = id_of(allocation.partition, allocation.id);
    const bool is_own = id < first_foreign;
    there.insert(id);
    if (is_own) last_id_ = std::max(last_id_, id);
    if (recording_.contains(id)) {
      on_recorded(id, {});
    } else if (!pool_.holds(id)) {
      pool_.recover(id, allocation.resources);
      if (is_own) say_(fmt::format(R"({{"recovered":{},"R":{}}})", id, allocation.resources.encode()));
    }
  }
  // Put jobs back that the ledger does not have: their alloc was not made, or their free was. The first job
  // is known only when all of them are back in the queue.
  for (const Pool::JobId id : pool_.jobs()) {
    if (there.contains(id)) {
      if (freeing_.contains(id)) release(id);
      continue;
    }
    if (auto lost = recording_.extract(id); !lost.empty()) {
      pool_.release(id);
      requeue(std::move(lost.mapped().job));
    } else {
      finish_release(id);
    }
  }
}

void Scheduler::judge_queue() {
  std::erase_if(queue_, [this](const Job& job) {
    const std::string denial = pool_.denial(job.request);
    if (!denial.empty()) deny(job.id, denial);
    return !denial.empty();
  });
}

std::string Scheduler::reason_to_wait() const {
  if (!acquired_) return "the daemon is away";
  if (queue_.size() > 1) return fmt::format("{} is first", queue_[queue_.size() - 2].id);
  if (is_stalled_) return "the daemon cannot commit changes";
  if (pool_.expired(clock_())) return "the resources have expired";
  return "too little is up and free";
}

void Scheduler::on_resources(const rset::ResourceSet& resources, const IdSet& up) {
  pool_.acquire(resources, up);
  acquired_ = judge_ = true;
  change_view();
  const rset::ResourceCounts counts = resources.counts();
  say({{"acquired", {{"nodes", counts.nodes}, {"cores", counts.cores}, {"gpus", counts.gpus}}},
       {"up", up.encode()}});
}

void Scheduler::on_property_remove(std::string_view name, const IdSet& ranks) {
  pool_.remove_property(name, ranks);
  try_head_ = judge_ = true;
  say({{"property-remove", {{name, ranks.encode()}}}});
}

void Scheduler::on_property_add(std::string_view name, const IdSet& ranks) {
  pool_.add_property(name, ranks);
  try_head_ = judge_ = true;
  say({{"property-add", {{name, ranks.encode()}}}});
}

void Scheduler::on_expiration(WallTime time) {
  pool_.set_expiration(time);
  try_head_ = true;
  say({{"expiration", to_number(time)}});
}

void Scheduler::on_shrink(const IdSet& ranks) {
  pool_.shrink(ranks);
  judge_ = true;
  change_view();
  say({{"shrink", ranks.encode()}});
}

void Scheduler::on_down(const IdSet& ranks) {
  pool_.set_down(ranks);
  change_view();
  say({{"down", ranks.encode()}});
}

void Scheduler::on_up(const IdSet& ranks) {
  pool_.set_up(ranks);
  change_view();
  say({{"up", ranks.encode()}});
}

void Scheduler::on_lost(const Error& why) {
  acquired_ = false;
  say({{"lost", why.what()}});
}

}  // namespace resourced::fifo
