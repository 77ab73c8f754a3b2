// The part of the engine that changes the ledger for schedulers and operators, and that tells schedulers with
// the extension `ledger` of these changes.
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/error.hpp"

namespace resourced::engine {

using text::IdSet;

std::vector<Engine::Former> Engine::changing(const module::EventBody& event) const {
  std::vector<Former> former;
  if (!is_of_ledger(event) || !acquisition_.anyone_has(&module::Extensions::ledger)) return former;
  const module::Ledger::Allocations& all = module_.ledger().all();
  if (const auto* alloc = std::get_if<module::AllocEvent>(&event)) {
    for (const module::SharedAllocation& made : alloc->allocations) former.emplace_back(made->name, nullptr);
  } else if (const auto* update = std::get_if<module::AllocUpdateEvent>(&event)) {
    former.emplace_back(update->name, all.at(update->name));
  } else if (const auto* free = std::get_if<module::FreeEvent>(&event)) {
    for (const std::string& id : free->ids) {
      if (const auto place = find_freed(all, *free, id); place != all.end()) former.emplace_back(*place);
    }
  }
  return former;
}

std::set<HolderId> Engine::ledgers_with(const module::AllocationName& name, const IdSet& ranks) const {
  std::set<HolderId> holders = acquisition_.concerned_by(ranks, &module::Extensions::ledger);
  // Without partitions one scheduler has all allocations.
  const auto own = acquisition_.holder_of(acquisition_.partitions().empty() ? "" : name.partition);
  if (own && acquisition_.tells(*own, &module::Extensions::ledger)) holders.insert(*own);
  return holders;
}

void Engine::announce_allocations(const std::vector<Former>& changed, const Occasion& now, Effects& effects) {
  std::map<HolderId, module::Delta> told;
  const module::Ledger::Allocations& all = module_.ledger().all();
  for (const auto& [name, before] : changed) {
    module::AllocationNews news;
    if (const auto found = all.find(name); found != all.end()) news.now = found->second;
    IdSet ranks = before ? before->resources.ranks() : IdSet();
    if (before && news.now) news.freed = ranks - news.now->resources.ranks();
    news.whole = news.now && news.freed.empty();
    news.made = !before;
    if (news.now) ranks |= news.now->resources.ranks();
    // Tell of an expiration that has passed already here: announce_expired() does not look back.
    const bool has_expired = news.now && news.now->expiration && *news.now->expiration <= expired_told_ &&
                             (!before || before->expiration != news.now->expiration);
    for (const HolderId holder : ledgers_with(name, ranks)) {
      module::AllocationNews& one = told[holder].allocations[name] = news;
      const bool is_sender = std::ranges::find(now.senders, holder) != now.senders.end();
      one.own = is_sender && !has_expired;
      // The sender knows its allocation from the answer, and so has to be told of its end in any case.
      one.made = one.made && !is_sender;
    }
  }
  for (auto& [holder, delta] : told) effects.updates.push_back({applied_, holder, std::move(delta)});
}

void Engine::announce_expired(WallTime now, Effects& effects) {
  std::map<HolderId, module::Delta> told;
  if (acquisition_.anyone_has(&module::Extensions::ledger)) {
    for (const module::SharedAllocation& expired : module_.ledger().expiring(expired_told_, now)) {
      for (const HolderId holder : ledgers_with(expired->name, expired->resources.ranks()))
        told[holder].allocations[expired->name] = {.now = expired, .expired = true};
    }
  }
  for (auto& [holder, delta] : told) effects.updates.push_back({applied_, holder, std::move(delta)});
  // The clock may have been set back, so this time may be earlier than before.
  expired_told_ = now;
}

std::vector<module::SharedAllocation> Engine::allocations_of(const IdSet& targets,
                                                             const std::string& partition,
                                                             bool ledger) const {
  std::vector<module::SharedAllocation> allocations;
  const IdSet acquirable = module_.acquirable();
  for (const auto& [name, allocation] : module_.ledger().all()) {
    const IdSet& ranks = allocation->resources.ranks();
    // Without partitions one scheduler has all allocations.
    const bool is_own = acquisition_.partitions().empty() || !(ranks & targets).empty() ||
                        (name.partition == partition && (ledger || (ranks & acquirable).empty()));
    if (is_own) allocations.push_back(allocation);
  }
  return allocations;
}

std::vector<module::Holding> Engine::holdings_of(const std::vector<HolderId>& holders) const {
  std::vector<module::Holding> holdings;
  for (const HolderId holder : holders) {
    if (const auto held = acquisition_.held_by(holder)) holdings.push_back({held->partition, held->kept});
  }
  if (holdings.empty()) throw Error(EPERM, "no resources are acquired");
  return holdings;
}

void Engine::take(ChangeLedger&& input, const Occasion& now, Effects& effects) {
  input.command.holdings = holdings_of(input.holders);
  Occasion sent = now;
  sent.senders = std::move(input.holders);
  change_ledger(std::move(input.command), sent, effects);
}

void Engine::change_ledger(module::LedgerCommand command, const Occasion& now, Effects& effects) {
  command.has_partitions = !acquisition_.partitions().empty();
  command.max_bytes = ledger_rules_.max_bytes;
  execute(std::move(command), now, effects);
}

void Engine::take(const KeepLedger& input, const Occasion& /*now*/, Effects& /*effects*/) {
  ledger_rules_ = input.rules;
}

}  // namespace resourced::engine
