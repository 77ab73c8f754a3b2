#include "core/module/waits.hpp"

#include <cstddef>

#include <fmt/format.h>

namespace resourced::module {

using text::IdSet;

namespace {

// Returns the targets whose allocations nobody reports. A job manager reports the jobs of all targets, but
// not the allocations of a scheduler outside of its instance.
IdSet unreported_targets(const Module& module, const Acquisition& acquisition, bool knows_jobs) {
  const IdSet& reported = acquisition.reported();
  if (module.keeps_allocations()) return module.inventory().ranks() - reported;
  if (!knows_jobs) return module.inventory().ranks();
  return acquisition.kept_by_anyone() - reported;
}

}  // namespace

WaitedState::WaitedState(const Module& module, const Acquisition& acquisition, const IdSet& unchecked,
                         const IdSet* jobs)
    : allocated_(module.ledger().ranks()),
      jobs_(jobs),
      unreported_(unreported_targets(module, acquisition, jobs != nullptr)),
      ready_((module.online() & module.inventory().ranks()) - unchecked) {}

bool WaitedState::meets(const Wait& wait) const {
  if (wait.condition == WaitCondition::ready) return ready_.includes(wait.targets);
  const bool is_idle =
      !wait.targets.intersects(allocated_) && (jobs_ == nullptr || !wait.targets.intersects(*jobs_));
  if (wait.condition == WaitCondition::idle && !is_idle) return false;
  return wait.unreported == Unreported::assume_idle || !wait.targets.intersects(unreported_);
}

std::string unreported_text(const IdSet& targets, const rset::ResourceSet& inventory) {
  // Each run of ranks is at least one entry of the hostlist.
  constexpr std::size_t most_runs = 64;
  IdSet named;
  std::size_t runs = 0;
  targets.for_each_range([&](IdSet::Range run) {
    if (++runs <= most_runs) named.insert(run.first, run.last);
  });
  std::string text = fmt::format("nobody reports what runs on {}", inventory.hosts(named).encode());
  if (runs > most_runs) text += fmt::format(" and {} more", targets.count() - named.count());
  return text;
}

}  // namespace resourced::module
