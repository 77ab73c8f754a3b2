// Input and output of the scheduler: the lines of its user, and the changes that it prints.
#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/quote.hpp"
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
  if (is_id && id < first_foreign && pool_.holds(id)) return release(id);
  if (!is_id || std::erase_if(queue_, has_id) == 0)
    return say({{"error", fmt::format("free: {} holds nothing and does not wait", text::quoted(argument))}});
  say({{"free", id}});
  try_head_ = true;
  schedule();
}

void Scheduler::deny(Pool::JobId id, std::string_view why) { say({{"id", id}, {"denied", why}}); }

std::string Scheduler::reason_to_wait() const {
  if (!acquired_) return "the daemon is away";
  if (queue_.size() > 1) return fmt::format("{} is first", queue_[queue_.size() - 2].id);
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
