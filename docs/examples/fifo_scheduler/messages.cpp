// Input and output of the scheduler: the lines of its user, and the changes that it prints.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"
#include "docs/examples/fifo_scheduler/scheduler.hpp"

namespace resourced::fifo {

using text::IdSet;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

}  // namespace

void Scheduler::say(const Json& object) { say_(object.dump(-1, ' ', false, Json::error_handler_t::replace)); }

void Scheduler::command(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.starts_with('#')) return;
  const std::string_view verb = line.substr(0, line.find_first_of(blanks));
  const std::string_view arguments = trimmed(line.substr(verb.size()));
  if (verb == "free")
    free(arguments);
  else if (verb == "prolong")
    prolong(arguments);
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
  const auto id = text::whole_number<Pool::JobId>(argument).value_or(first_foreign);
  const auto has_id = [&](const Job& job) { return job.id == id; };
  if (id < first_foreign && pool_.holds(id)) {
    try {
      release(id);
    } catch (const Error& unanswered) {
      say({{"error", fmt::format("free: {}: {}", id, unanswered.what())}});
    }
    return schedule();
  }
  if (std::erase_if(queue_, has_id) == 0)
    return say({{"error", fmt::format("free: {} holds nothing and does not wait", text::quoted(argument))}});
  say({{"free", id}});
  try_head_ = true;
  schedule();
}

/// Moves the end of a job, unless a drain of one of its targets begins before the new end.
void Scheduler::prolong(std::string_view arguments) {
  const auto fail = [this, line = std::string(arguments)](std::string_view why) {
    say({{"error", fmt::format("prolong: {}: {}", line, why)}});
  };
  Pool::JobId id = 0;
  double seconds = 0;
  const char* const end = arguments.data() + arguments.size();
  const auto first = std::from_chars(arguments.data(), end, id);
  const std::string_view rest = trimmed({first.ptr, end});
  const auto second = std::from_chars(rest.data(), end, seconds);
  if (first.ec != std::errc() || second.ec != std::errc() || second.ptr != end || !std::isfinite(seconds) ||
      seconds <= 0)
    return fail("not an id and a number of seconds");

  const client::Allocation* const job = settled(id);
  if (job == nullptr || !job->expiration) return fail("the ledger has no such job with an end");
  const WallTime later = *job->expiration + Seconds(seconds);
  if (!(pool_.drained_before(later) & job->resources.ranks()).empty())
    return fail("a drain begins before the new end");
  ledger_->update({.id = job->id, .expiration = later},
                  [this, fail, id, later](const client::Response& answer) {
                    if (!answer.ok()) return fail(answer.error().what());
                    say({{"prolonged", id}, {"expiration", to_number(later)}});
                  });
}

void Scheduler::deny(Pool::JobId id, std::string_view why) { say({{"id", id}, {"denied", why}}); }

std::string Scheduler::reason_to_wait() const {
  if (!acquired_) return "the daemon is away";
  if (queue_.size() > 1) return fmt::format("{} is first", queue_[queue_.size() - 2].id);
  if (pool_.expired(clock_())) return "the resources have expired";
  if (pool_.waits_for_drain(queue_.back().request, clock_())) return "a drain begins before its end";
  return "too little is up and free";
}

const client::Allocation* Scheduler::settled(Pool::JobId id) const {
  if (ledger_ == nullptr) return nullptr;
  const client::Ledger::Name name(partition_, std::to_string(id));
  for (const auto& unanswered : {ledger_->pending(), ledger_->unknown()})
    if (std::ranges::find(unanswered, name) != unanswered.end()) return nullptr;
  const auto entry = ledger_->list().find(name);
  return entry == ledger_->list().end() ? nullptr : &entry->second.allocation;
}

void Scheduler::finish_release(Pool::JobId id) {
  pool_.release(id);
  if (id < first_foreign) say({{"free", id}});
  try_head_ = true;
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
  judge_ = true;
  change_view();
  say({{"property-remove", {{name, ranks.encode()}}}});
}

void Scheduler::on_property_add(std::string_view name, const IdSet& ranks) {
  pool_.add_property(name, ranks);
  judge_ = true;
  change_view();
  say({{"property-add", {{name, ranks.encode()}}}});
}

void Scheduler::on_expiration(WallTime time) {
  pool_.set_expiration(time);
  change_view();
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
  Json line{{"down", ranks.encode()}};
  const auto add = [&](const char* name, const IdSet& of) {
    if (!of.empty()) line["cause"][name] = of.encode();
  };
  add("drained", causes_.drained);
  add("offline", causes_.offline);
  add("torpid", causes_.torpid);
  add("excluded", causes_.excluded);
  say(line);
}

void Scheduler::on_up(const IdSet& ranks) {
  pool_.set_up(ranks);
  change_view();
  say({{"up", ranks.encode()}});
}

void Scheduler::on_scheduled(const std::vector<client::ScheduledDrain>& drains) {
  pool_.set_scheduled(drains);
  try_head_ = true;
}

void Scheduler::on_lost(const Error& why) {
  acquired_ = false;
  say({{"lost", why.what()}});
}

}  // namespace resourced::fifo
