// Leases: a scheduler that has asked for one renews it in time, hangs, or stands still together with the
// daemon.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "simulation.hpp"

namespace resourced::sim {

using proto::flag::noresponse;

bool Simulation::renews(const Scheduler& scheduler) {
  return scheduler.lease > Seconds(0) && !scheduler.hangs && scheduler.ended == 0;
}

Seconds Simulation::renewal(const Scheduler& scheduler) { return scheduler.heard + scheduler.lease / 2; }

void Simulation::renew() {
  for (const auto& [client, scheduler] : schedulers_) {
    if (renews(scheduler) && renewal(scheduler) <= awake() + rounding)
      request(client, "resource.acquire-renew", nullptr, noresponse);
  }
}

bool Simulation::may_be_over(const Scheduler& scheduler) const {
  return scheduler.lease > Seconds(0) && scheduler.heard + scheduler.lease <= awake() + rounding;
}

// A lease ends at a time between the two bounds that the daemon chooses. No client acts in between.
void Simulation::end_leases() {
  for (;;) {
    const auto found = std::ranges::find_if(
        schedulers_, [&](const auto& entry) { return entry.second.ended == 0 && may_be_over(entry.second); });
    if (found == schedulers_.end()) return;
    const auto& [client, scheduler] = *found;
    note(fmt::format("the lease of \"{}\" is over", scheduler.partition));
    const ClientId silent = client;
    advance(std::max(Seconds(0), scheduler.heard + scheduler.lease + scheduler.slack - awake()));
    if (const auto still = schedulers_.find(silent); still != schedulers_.end())
      still->second.ended = ETIMEDOUT;
  }
}

void Simulation::hang() {
  if (schedulers_.empty()) return;
  auto& [client, scheduler] = *random_peer(schedulers_);
  if (scheduler.lease == Seconds(0) || scheduler.ended != 0) return;
  scheduler.hangs = !scheduler.hangs;
  note(fmt::format("the scheduler of \"{}\" {}", scheduler.partition,
                   scheduler.hangs ? "hangs" : "comes to life"));
  if (!scheduler.hangs) request(client, "resource.acquire-renew", nullptr, noresponse);
}

void Simulation::sleep() {
  // The loop has nothing left to do when it stops.
  advance(Seconds(0));
  const Seconds span(20 + below(100));
  note(fmt::format("the daemon stands still for {} s", span.count()));
  now_ += span.count();
  uptime_ += span;
  asleep_ += span;
  unsure_until_ += span;
  // The daemon does not know when it began to stand still, and may give back more than that.
  for (auto& [client, scheduler] : schedulers_) scheduler.slack += Seconds(6);
}

}  // namespace resourced::sim
