#include "core/module/waits.hpp"

#include <cstddef>

#include <fmt/format.h>

namespace resourced::module {

using text::IdSet;

WaitedState::WaitedState(const Module& module, const Acquisition& acquisition, const IdSet& unchecked)
    : allocated_(module.ledger().ranks()),
      unreported_(module.inventory().ranks() - acquisition.reported()),
      ready_((module.online() & module.inventory().ranks()) - unchecked) {}

bool WaitedState::meets(const Wait& wait) const {
  if (wait.condition == WaitCondition::ready) return ready_.includes(wait.targets);
  if (wait.targets.intersects(allocated_)) return false;
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
