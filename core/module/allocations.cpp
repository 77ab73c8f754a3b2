#include "core/module/allocations.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "core/rset/operations.hpp"
#include "core/text/idset_builder.hpp"
#include "core/text/shell_word.hpp"

namespace resourced::module {

using rset::ResourceGroup;
using rset::ResourceSet;
using text::IdSet;

namespace {

// A set is searched for a few runs of ranks; for many runs, all of it is walked through once.
constexpr std::size_t few_runs = 8;

std::size_t runs_of(const IdSet& ranks) {
  std::size_t runs = 0;
  ranks.for_each_range([&](IdSet::Range /*run*/) { ++runs; });
  return runs;
}

struct Ranks {
  explicit Ranks(const IdSet& all) : all_(all), few_(runs_of(all) <= few_runs) {}

  // Returns the first of the ranks that is in the set, and not among the others.
  [[nodiscard]] std::optional<IdSet::Id> first_in(const IdSet& set, const IdSet& others = {}) const {
    if (few_ && others.empty()) return all_.first_shared(set);
    const IdSet both = (all_ & set) - others;
    return both.empty() ? std::nullopt : std::optional(both.first());
  }
  void add_to(IdSet& set) const {
    if (!few_) {
      set |= all_;
    } else {
      all_.for_each_range([&](IdSet::Range run) {
        if (run.first == run.last) {
          set.insert(run.first);
        } else {
          set.insert(run.first, run.last);
        }
      });
    }
  }
  void take_from(IdSet& set) const {
    if (!few_) {
      set -= all_;
    } else {
      all_.for_each_range([&](IdSet::Range run) {
        if (run.first == run.last) {
          set.erase(run.first);
        } else {
          set.erase(run.first, run.last);
        }
      });
    }
  }

 private:
  const IdSet& all_;
  bool few_;
};

// Returns what stays absent of an allocation once these targets have left it.
std::vector<AbsentResources> absent_without(const IdSet& ranks, const Allocation& allocation) {
  std::vector<AbsentResources> left = allocation.absent;
  std::erase_if(
      left, [&](const AbsentResources& absent) { return absent.part_of && ranks.contains(*absent.part_of); });
  return left;
}

}  // namespace

std::string text_of(const AllocationName& name) {
  return name.partition.empty() ? name.id : fmt::format("{} of partition {}", name.id, name.partition);
}

std::string free_command(const AllocationName& name) {
  if (name.partition.empty()) return "resourcectl free " + text::shell_word(name.id);
  return fmt::format("resourcectl free --partition {} {}", text::shell_word(name.partition),
                     text::shell_word(name.id));
}

const ResourceGroup& group_of(const ResourceSet& resources, IdSet::Id rank) {
  const auto found = std::ranges::find_if(
      resources.groups(), [&](const ResourceGroup& group) { return group.ranks.contains(rank); });
  RESOURCED_INVARIANT(found != resources.groups().end());
  return *found;
}

ResourceSet without_targets(const ResourceSet& resources) {
  ResourceSet result;
  result.inherit(resources);
  return result;
}

SharedAllocation with_resources(const Allocation& allocation, ResourceSet resources,
                                std::vector<AbsentResources> absent) {
  Allocation changed = allocation;
  changed.text = std::make_shared<const std::string>(resources.encode());
  changed.resources = std::move(resources);
  changed.absent = std::move(absent);
  return std::make_shared<const Allocation>(std::move(changed));
}

SharedAllocation updated(const Allocation& allocation, const AllocUpdateEvent& event) {
  Allocation changed = allocation;
  if (event.expiration) changed.expiration = event.expiration;
  if (changed.expiration == WallTime{}) changed.expiration.reset();
  if (event.note) changed.note = event.note;
  if (changed.note == "") changed.note.reset();
  if (event.added.empty()) return std::make_shared<const Allocation>(std::move(changed));
  // Slots of an addition are further ones. Without them, the number of all is not known.
  const std::uint64_t all = changed.nslots.value_or(0) + event.added.nslots().value_or(0);
  const bool is_known = changed.nslots && event.added.nslots() && all > *changed.nslots;
  changed.nslots = is_known ? std::optional(all) : std::nullopt;
  ResourceSet both = rset::append(allocation.resources, event.added);
  both.set_nslots(changed.nslots);
  return with_resources(changed, std::move(both), allocation.absent);
}

std::size_t bytes_of(const Allocation& allocation) {
  return allocation.text->size() + allocation.name.id.size() + allocation.note.value_or("").size();
}

Ledger::Ledger(const Ledger& other) {
  for (const auto& [name, allocation] : other.allocations_) put(allocation, allocations_.end());
  version_ = other.version_;
}

Ledger& Ledger::operator=(const Ledger& other) {
  if (this != &other) *this = Ledger(other);
  return *this;
}

const Allocation* Ledger::find(const AllocationName& name) const {
  const auto found = allocations_.find(name);
  return found == allocations_.end() ? nullptr : found->second.get();
}

std::vector<SharedAllocation> Ledger::expiring(WallTime after, WallTime until, std::size_t most) const {
  std::vector<SharedAllocation> found;
  for (auto next = expirations_.upper_bound(after); next != expirations_.end() && next->first <= until;
       ++next) {
    for (const AllocationName& name : next->second) {
      if (found.size() == most) return found;
      found.push_back(allocations_.at(name));
    }
  }
  return found;
}

std::size_t Ledger::bytes_of(const std::string& partition) const {
  const auto found = bytes_of_.find(partition);
  return found == bytes_of_.end() ? 0 : found->second;
}

void Ledger::count(const Allocation& allocation) {
  const std::size_t bytes = module::bytes_of(allocation);
  bytes_ += bytes;
  bytes_of_[allocation.name.partition] += bytes;
}

void Ledger::discount(const Allocation& allocation) {
  const std::size_t bytes = module::bytes_of(allocation);
  bytes_ -= bytes;
  const auto own = bytes_of_.find(allocation.name.partition);
  own->second -= bytes;
  if (own->second == 0) bytes_of_.erase(own);
}

std::optional<WallTime> Ledger::next_expiration(WallTime after) const {
  const auto next = expirations_.upper_bound(after);
  return next == expirations_.end() ? std::nullopt : std::optional(next->first);
}

ResourceSet HeldResources::within(const ResourceSet& all) const {
  std::vector<ResourceGroup> groups;
  const auto add = [&](const HeldAt& index, bool is_gpu) {
    // As a rule neighbouring core or gpu numbers are held on the same ranks.
    const IdSet* last = nullptr;
    for (const auto& [number, holding] : index) {
      if (last != nullptr && holding == *last) {
        (is_gpu ? groups.back().gpus : groups.back().cores).insert(number);
        continue;
      }
      IdSet here = holding & all.ranks();
      if (here.empty()) continue;
      const IdSet numbers{number};
      groups.push_back({std::move(here), is_gpu ? IdSet{} : numbers, is_gpu ? numbers : IdSet{}});
      last = &holding;
    }
  };
  add(cores, false);
  add(gpus, true);
  if (groups.empty()) return {};
  return {std::move(groups), all.hosts(ranks & all.ranks())};
}

void HeldResources::add(const ResourceSet& resources) {
  for (const ResourceGroup& group : resources.groups()) {
    const Ranks those(group.ranks);
    group.cores.for_each([&](IdSet::Id core) { those.add_to(cores[core]); });
    group.gpus.for_each([&](IdSet::Id gpu) { those.add_to(gpus[gpu]); });
    those.add_to(ranks);
  }
}

std::size_t Ledger::work_of(const ResourceSet& resources) {
  constexpr std::size_t runs_of_one_search = 64;
  constexpr std::size_t units_of_number = 4;
  std::size_t work = 0;
  for (const ResourceGroup& group : resources.groups()) {
    const std::size_t searches = 1 + runs_of(group.ranks) / runs_of_one_search;
    work += units_of_number * (group.cores.count() + group.gpus.count()) * searches + group.ranks.count();
  }
  return work;
}

std::optional<Ledger::Held> Ledger::first_held(const ResourceSet& wanted, const HeldResources& freed) const {
  static const IdSet none;
  std::optional<Held> held;
  for (const ResourceGroup& group : wanted.groups()) {
    const Ranks ranks(group.ranks);
    if (!ranks.first_in(held_.ranks)) continue;
    const auto look = [&](const HeldAt& index, const HeldAt& leaving, const IdSet& numbers, bool is_gpu) {
      numbers.for_each_range([&](IdSet::Range run) {
        for (auto at = index.lower_bound(run.first); !held && at != index.end() && at->first <= run.last;
             ++at) {
          const auto others = leaving.find(at->first);
          if (const auto rank = ranks.first_in(at->second, others == leaving.end() ? none : others->second))
            held.emplace(Held{*rank, is_gpu, at->first, holder_of(*rank, is_gpu, at->first)});
        }
      });
    };
    look(held_.gpus, freed.gpus, group.gpus, true);
    if (!held) look(held_.cores, freed.cores, group.cores, false);
    if (held) return held;
  }
  return held;
}

const Allocation& Ledger::holder_of(IdSet::Id rank, bool is_gpu, IdSet::Id number) const {
  const Page& page = *pages_.at(rank / page_size);
  const auto& here = page.at(rank % page_size);
  const auto found = std::ranges::find_if(here, [&](const SharedAllocation* allocation) {
    const ResourceGroup& group = group_of((*allocation)->resources, rank);
    return (is_gpu ? group.gpus : group.cores).contains(number);
  });
  RESOURCED_INVARIANT(found != here.end());
  return ***found;
}

template <class F>
void Ledger::for_each_slot(const IdSet& ranks, F f) {
  ranks.for_each_range([&](IdSet::Range run) {
    Page* page = nullptr;
    for (IdSet::Id rank = run.first;; ++rank) {
      if (page == nullptr || rank % page_size == 0) {
        auto& known = pages_[rank / page_size];
        if (!known) known = std::make_unique<Page>();
        page = known.get();
      }
      f(rank, (*page)[rank % page_size]);
      if (rank == run.last) break;
    }
  });
}

std::optional<Ledger::Allocations> Ledger::on(const IdSet& ranks, std::size_t most) const {
  Allocations found;
  const IdSet held = ranks & held_.ranks;
  if (held.count() > most) return std::nullopt;
  std::size_t count = 0;
  held.for_each([&](IdSet::Id rank) {
    const auto page = pages_.find(rank / page_size);
    if (page == pages_.end() || count > most) return;
    for (const SharedAllocation* allocation : (*page->second)[rank % page_size]) {
      if (++count > most) return;
      found.emplace((*allocation)->name, *allocation);
    }
  });
  if (count > most) return std::nullopt;
  return found;
}

std::size_t Ledger::runs_held(const ResourceSet& resources) {
  std::size_t runs = 0;
  for (const ResourceGroup& group : resources.groups())
    runs += runs_of(group.ranks) * (group.cores.count() + group.gpus.count());
  return runs;
}

void Ledger::index(const SharedAllocation& place) {
  const ResourceSet& resources = place->resources;
  work_of_held_ += runs_held(resources);
  held_.add(resources);
  for_each_slot(resources.ranks(), [&](IdSet::Id /*rank*/, auto& here) { here.push_back(&place); });
}

void Ledger::unindex(const ResourceSet& resources, const SharedAllocation& place) {
  const auto take = [](HeldAt& index, const IdSet& numbers, const Ranks& ranks) {
    numbers.for_each([&](IdSet::Id number) {
      const auto at = index.find(number);
      RESOURCED_INVARIANT(at != index.end());
      ranks.take_from(at->second);
      if (at->second.empty()) index.erase(at);
    });
  };
  for (const ResourceGroup& group : resources.groups()) {
    const Ranks ranks(group.ranks);
    take(held_.cores, group.cores, ranks);
    take(held_.gpus, group.gpus, ranks);
  }
  text::IdSetBuilder empty;
  for_each_slot(resources.ranks(), [&](IdSet::Id rank, auto& here) {
    const auto found = std::ranges::find(here, &place);
    RESOURCED_INVARIANT(found != here.end());
    *found = here.back();
    here.pop_back();
    if (here.empty()) empty.append(rank, rank);
  });
  const IdSet unused = empty.take();
  Ranks(unused).take_from(held_.ranks);
}

Ledger::Allocations::iterator Ledger::put(const SharedAllocation& allocation,
                                          Allocations::const_iterator next) {
  // No core or gpu has two holders, whatever a scheduler has asked for.
  RESOURCED_INVARIANT(!first_held(allocation->resources));
  const std::size_t before = allocations_.size();
  const auto place = allocations_.try_emplace(next, allocation->name, allocation);
  RESOURCED_INVARIANT(allocations_.size() > before);
  index_expiration(*allocation);
  index(place->second);
  count(*allocation);
  ++version_;
  return place;
}

SharedAllocation Ledger::take(Allocations::iterator found) {
  work_of_held_ -= runs_held(found->second->resources);
  unindex(found->second->resources, found->second);
  SharedAllocation allocation = std::move(found->second);
  allocations_.erase(found);
  unindex_expiration(*allocation);
  discount(*allocation);
  ++version_;
  return allocation;
}

void Ledger::take_part(Allocations::iterator found, const ResourceSet& part) {
  SharedAllocation& place = found->second;
  // The slots are those of all targets, and do not hold for a part of them.
  Allocation rest = *place;
  rest.nslots.reset();
  work_of_held_ -= runs_held(place->resources);
  unindex(part, place);
  ResourceSet resources = place->resources.copy_ranks(place->resources.ranks() - part.ranks());
  if (resources.empty()) resources = without_targets(place->resources);
  discount(*place);
  place = with_resources(rest, std::move(resources), absent_without(part.ranks(), *place));
  count(*place);
  work_of_held_ += runs_held(place->resources);
  ++version_;
}

bool Ledger::ends_without(const IdSet& ranks, const Allocation& allocation) {
  return absent_without(ranks, allocation).empty() && ranks.includes(allocation.resources.ranks());
}

void Ledger::apply(const AllocEvent& event) {
  auto next = allocations_.end();
  for (const SharedAllocation& allocation : event.allocations) next = std::next(put(allocation, next));
}

void Ledger::apply(const AllocUpdateEvent& event) {
  const auto found = allocations_.find(event.name);
  RESOURCED_INVARIANT(found != allocations_.end() && !first_held(event.added));
  SharedAllocation& place = found->second;
  SharedAllocation next = updated(*place, event);
  ++version_;
  discount(*place);
  count(*next);
  unindex_expiration(*place);
  if (event.added.empty()) {
    place = std::move(next);
  } else {
    work_of_held_ -= runs_held(place->resources);
    unindex(place->resources, place);
    place = std::move(next);
    index(place);
  }
  index_expiration(*place);
}

void Ledger::index_expiration(const Allocation& allocation) {
  if (allocation.expiration) expirations_[*allocation.expiration].insert(allocation.name);
}

void Ledger::unindex_expiration(const Allocation& allocation) {
  if (!allocation.expiration) return;
  const auto expiring = expirations_.find(*allocation.expiration);
  expiring->second.erase(allocation.name);
  if (expiring->second.empty()) expirations_.erase(expiring);
}

std::vector<std::shared_ptr<const ResourceSet>> Ledger::apply(const FreeEvent& event) {
  std::vector<std::shared_ptr<const ResourceSet>> released;
  for (const std::string& id : event.ids) {
    const auto place = find_freed(allocations_, event, id);
    RESOURCED_INVARIANT(place != allocations_.end());
    const Allocation& allocation = *place->second;
    if (event.partial && !ends_without(event.ranks, allocation)) {
      auto part = std::make_shared<const ResourceSet>(allocation.resources.copy_ranks(event.ranks));
      take_part(place, *part);
      released.push_back(std::move(part));
    } else {
      const SharedAllocation taken = take(place);
      released.emplace_back(taken, &taken->resources);
    }
  }
  return released;
}

}  // namespace resourced::module
