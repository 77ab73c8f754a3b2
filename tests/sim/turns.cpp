// The turns of requests: the daemon reads a large request on a thread, and those of the same client that come
// later wait behind it.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "simulation.hpp"

namespace resourced::sim {

using nlohmann::json;

Simulation::Standing Simulation::standing() const {
  const module::Ledger& ledger = service_->engine().module().ledger();
  return {service_->engine().applied(), ledger.bytes(), ledger.bytes_of(""), ledger.bytes_of("left")};
}

void Simulation::ask_change(ClientId client, const char* topic, const json& payload, bool repeats) {
  note(fmt::format("{} {}", topic, payload.dump()));
  const Standing before = standing();
  const std::uint32_t matchtag = request(client, topic, payload);
  ledger_asked_.emplace(matchtag, Change{client, topic, payload, repeats});
  const auto line = lines_.find(client);
  const bool waits = line != lines_.end() && line->second.requests.back() == matchtag;
  if (waits) ++counts_.large;
  if (!waits) take_turn(matchtag, before);
}

void Simulation::take_turn(std::uint32_t matchtag, const Standing& before) {
  const auto found = ledger_asked_.find(matchtag);
  if (found == ledger_asked_.end()) return;
  Change& change = found->second;
  const Standing now = standing();
  change.after = now.applied;
  change.asked = now_;
  const Turn turn{matchtag, now.applied, now.applied > before.applied};
  const bool is_second =
      change.repeats && last_turn_.matchtag == matchtag - 1 && last_turn_.after == before.applied;
  demand(!is_second || !last_turn_.is_done || !turn.is_done,
         "a change of the ledger that is repeated is done again");
  last_turn_ = turn;

  if (change.topic == "resource.free") return;
  // The rest of an allocation of which a part is freed may have a longer text.
  const std::size_t most_added = 2 * change.payload.dump().size();
  const auto check = [&](std::size_t size, std::size_t former, std::size_t most) {
    demand(size <= most || size <= former, "the ledger grows beyond its bound");
    change.fits = change.fits && former + most_added <= most;
  };
  check(now.bytes, before.bytes, ledger_rules_.max_bytes);
  if (!with_partition_) return;
  check(now.of_left, before.of_left, ledger_rules_.max_bytes / 2);
  check(now.of_rest, before.of_rest, ledger_rules_.max_bytes / 2);
}

void Simulation::take_turns(const Standing& before) {
  const daemon::service::LargeRequests& large = service_->large_requests();
  for (auto next = lines_.begin(); next != lines_.end();) {
    auto& [client, line] = *next;
    for (; line.requests.size() > large.size(client); line.requests.pop_front())
      take_turn(line.requests.front(), before);
    if (line.requests.empty()) {
      next = lines_.erase(next);
      continue;
    }
    if (large.reads(client) && !std::exchange(line.is_read, true)) {
      later_.emplace_back([this, reader = client, work = wait_for_thread()] {
        if (const auto found = lines_.find(reader); found != lines_.end()) found->second.is_read = false;
        work();
      });
    }
    ++next;
  }
}

std::function<void()> Simulation::wait_for_thread() {
  std::unique_lock lock(mutex_);
  demand(is_posted_.wait_for(lock, std::chrono::seconds(60), [this] { return posted_ != nullptr; }),
         "a thread has read nothing");
  return std::exchange(posted_, nullptr);
}

void Simulation::check_answered() {
  // Nobody reads the answers of one that has ended.
  std::erase_if(ledger_asked_, [&](const auto& asked) { return !schedulers_.contains(asked.second.client); });
  demand(ledger_asked_.empty() && lines_.empty(), "a request for the ledger has no answer");
}

}  // namespace resourced::sim
