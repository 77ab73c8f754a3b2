// Decisions on allocations. The reasons to refuse an alloc are checked in this order: the work, the form,
// targets that the inventory does not have, targets that the scheduler does not hold, what the request frees,
// resources, keys, times and properties that the inventory does not have, an id that is taken, targets that
// are drained or excluded, resources that are held, a ledger that would be too large.
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/invariant.hpp"
#include "core/module/allocation_checks.hpp"
#include "core/module/module.hpp"
#include "core/rset/operations.hpp"
#include "core/text/quote.hpp"

namespace resourced::module {

using rset::ResourceGroup;
using rset::ResourceSet;
using text::IdSet;

namespace {

// Bounds the work of one step to some milliseconds, so that it does not delay others. An allocation of all
// resources of all targets is within the bound, as an inventory of many targets has runs of them.
class Work {
 public:
  explicit Work(std::size_t targets) : most_(least_bound + targets) {}

  // Counts further work, and returns whether all of it is within the bound.
  bool fits(std::size_t work) {
    sum_ += work;
    return sum_ <= most_;
  }
  void add(std::size_t work) {
    if (fits(work)) return;
    throw Error(EMSGSIZE,
                "the request names too many cores, gpus and targets; name fewer, or fewer allocations");
  }

 private:
  static constexpr std::size_t least_bound = 30000;
  std::size_t most_;
  std::size_t sum_ = 0;
};

IdSet all_of(const std::vector<Holding>& holdings) {
  IdSet all;
  for (const Holding& holding : holdings) all |= holding.targets;
  return all;
}

void check_free(const ResourceSet& wanted, const Ledger& ledger, const HeldResources& freed,
                const ResourceSet& inventory) {
  const auto held = ledger.first_held(wanted, freed);
  if (!held) return;
  throw Error(EBUSY, fmt::format("{} {}{} is held by allocation {}", inventory.host(held->rank),
                                 held->is_gpu ? "gpu" : "core", held->number, text_of(held->holder.name)));
}

// Returns the acquisition that has the targets of a new allocation. All of them are in one, as the allocation
// gets the partition of it.
const Holding& holding_of(const AllocationRequest& wanted, const std::vector<Holding>& holdings,
                          const ResourceSet& inventory) {
  const IdSet& ranks = wanted.resources.ranks();
  const auto found = std::ranges::find_if(holdings, [&](const Holding& holding) {
    return wanted.partition ? holding.partition == *wanted.partition
                            : holding.targets.contains(ranks.first());
  });
  if (found == holdings.end() && wanted.partition)
    throw Error(EPERM, fmt::format("partition {} is not acquired", text::quoted(*wanted.partition)));
  if (found != holdings.end() && found->targets.includes(ranks)) return *found;
  const IdSet others = found == holdings.end() ? ranks : ranks - found->targets;
  if (all_of(holdings).contains(others.first()))
    throw Error(EPERM, fmt::format("allocation {}: rank {} ({}) is of another acquisition; make one of each",
                                   wanted.id, others.first(), inventory.host(others.first())));
  throw Error(EPERM,
              fmt::format("rank {} ({}) is not acquired", others.first(), inventory.host(others.first())));
}

SharedAllocation make_allocation(const AllocationRequest& wanted, const std::string& partition) {
  Allocation allocation{{partition, wanted.id},
                        wanted.resources,
                        std::make_shared<const std::string>(wanted.resources.encode())};
  allocation.nslots = wanted.resources.nslots();
  if (wanted.expiration != WallTime{}) allocation.expiration = wanted.expiration;
  allocation.note = wanted.note;
  return std::make_shared<const Allocation>(std::move(allocation));
}

// Returns the partitions that have an allocation with this id, as text; empty if none has.
std::string partitions_text(const Ledger& ledger, const std::string& id) {
  std::string text;
  for (const std::string& partition : partitions_with(ledger.all(), id))
    text +=
        (text.empty() ? "" : ", ") + (partition.empty() ? "\"\" (no partition)" : text::quoted(partition));
  return text;
}

// Returns the name of the allocation that a free or an update means (FreeRequest::partition); nothing if no
// partition has one with the id.
template <class Request>
std::optional<AllocationName> name_of(const Request& request, const LedgerCommand& command,
                                      const Ledger& ledger) {
  if (request.partition) return AllocationName{*request.partition, request.id};
  if (command.holdings && command.holdings->size() == 1)
    return AllocationName{command.holdings->front().partition, request.id};
  if (!command.holdings && !command.has_partitions) return AllocationName{"", request.id};
  const std::string known = partitions_text(ledger, request.id);
  if (known.empty()) return std::nullopt;
  throw Error(EINVAL, fmt::format("name the partition of allocation {}, one of: {}", request.id, known));
}

template <class Request>
[[noreturn]] void refuse_unknown(const Request& request, const std::optional<AllocationName>& name,
                                 const Ledger& ledger) {
  const std::string others = request.partition || !name ? "" : partitions_text(ledger, request.id);
  throw Error(ENOENT, fmt::format("unknown allocation: {}{}{}", name ? text_of(*name) : request.id,
                                  others.empty() ? "" : "; partitions that have this id: ", others));
}

// Whether a scheduler has the partition of an allocation; where there are no partitions, it has all former
// ones.
bool has_partition(const std::vector<Holding>& holdings, bool has_partitions, const AllocationName& name) {
  return !has_partitions || std::ranges::any_of(holdings, [&](const Holding& holding) {
    return holding.partition == name.partition;
  });
}

// The scheduler of its partition frees an allocation, also where its targets have moved to another one, are
// excluded or have left; where there are no partitions any more, the one scheduler frees those of all. The
// scheduler that has a target now frees this target of it.
void check_frees(const std::vector<Holding>& holdings, bool has_partitions, const AllocationName& name,
                 const std::optional<IdSet>& ranks, const ResourceSet& configured) {
  if (has_partition(holdings, has_partitions, name)) return;
  if (!ranks) {
    throw Error(EPERM, fmt::format("allocation {} is of another scheduler: free the targets that you have by "
                                   "their ranks",
                                   text_of(name)));
  }
  if (const IdSet others = *ranks - all_of(holdings); !others.empty()) {
    const IdSet::Id rank = others.first();
    if (!configured.ranks().contains(rank))
      throw Error(EINVAL, fmt::format("rank {} is not in allocation {}", rank, text_of(name)));
    throw Error(EPERM, fmt::format("allocation {}: rank {} ({}) is not acquired", text_of(name), rank,
                                   configured.host(rank)));
  }
}

bool is_equal(const Allocation& allocation, const AllocationRequest& wanted) {
  return allocation.absent.empty() && allocation.resources == wanted.resources &&
         allocation.expiration.value_or(WallTime{}) == wanted.expiration.value_or(WallTime{}) &&
         allocation.note.value_or("") == wanted.note.value_or("");
}

bool has_all(const ResourceSet& resources, const ResourceSet& wanted) {
  return resources.ranks().includes(wanted.ranks()) &&
         resources.has_hosts(wanted.ranks(), wanted.nodelist()) && rset::diff(wanted, resources).empty();
}

// Decides what a command does to the ledger. It checks everything before any of it is done.
class LedgerDecision {
 public:
  LedgerDecision(const Module& module, const LedgerCommand& command)
      : module_(module), command_(command), work_(module.inventory().ranks().count()) {}

  std::vector<EventBody> take() {
    // Several allocations are compared with each other as well.
    const std::size_t times = command_.allocations.size() > 1 ? 2 : 1;
    for (const AllocationRequest& wanted : command_.allocations)
      work_.add(times * Ledger::work_of(wanted.resources));
    std::vector<std::pair<AllocationName, const Allocation*>> names;
    names.reserve(command_.allocations.size());
    alloc_.allocations.reserve(command_.allocations.size());
    for (const AllocationRequest& wanted : command_.allocations) {
      check_form(wanted);
      const Allocation* present = command_.repeat ? find_made(wanted) : nullptr;
      AllocationName name;
      if (present != nullptr) {
        name = present->name;
        made_.insert(present);
      } else {
        check_ranks(wanted.resources, inventory());
        name = {holding_of(wanted, *command_.holdings, inventory()).partition, wanted.id};
        present = ledger().find(name);
      }
      if (!changes_[name.partition].made.insert(wanted.id).second)
        throw Error(EEXIST, fmt::format("allocation {} is named twice", text_of(name)));
      names.emplace_back(std::move(name), present);
    }
    for (const FreeRequest& free : command_.frees) add_free(free);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto& [name, present] = names[i]; !made_.contains(present))
        add_allocation(command_.allocations[i], name, present);

    std::vector<EventBody> events;
    for (FreeEvent& event : frees_) {
      event.nodelist = module_.configured().hosts(event.ranks);
      events.emplace_back(std::move(event));
    }
    if (!alloc_.allocations.empty()) events.emplace_back(std::move(alloc_));
    if (command_.update) add_update(*command_.update, events);
    check_size();
    return events;
  }

 private:
  [[nodiscard]] const Ledger& ledger() const { return module_.ledger(); }
  [[nodiscard]] const ResourceSet& inventory() const { return module_.inventory(); }

  // Finds the allocation that a repeated request has made already in a partition of its sender; null if there
  // is none. Targets of it may have left the inventory or the partition meanwhile.
  [[nodiscard]] const Allocation* find_made(const AllocationRequest& wanted) const {
    for (const Holding& holding : *command_.holdings) {
      if (wanted.partition && *wanted.partition != holding.partition) continue;
      const Allocation* const present = ledger().find({holding.partition, wanted.id});
      if (present != nullptr && is_equal(*present, wanted)) return present;
    }
    return nullptr;
  }

  void add_free(const FreeRequest& free) {
    if (free.ranks && free.ranks->empty())
      throw Error(EINVAL, fmt::format("allocation {}: ranks is empty", free.id));
    const std::optional<AllocationName> name = name_of(free, command_, ledger());
    const Allocation* const allocation = name ? ledger().find(*name) : nullptr;
    if (allocation == nullptr && !command_.repeat) refuse_unknown(free, name, ledger());
    if (allocation != nullptr && !named_.insert(allocation).second)
      throw Error(EINVAL, fmt::format("allocation {} is named twice", text_of(*name)));
    if (command_.holdings && name)
      check_frees(*command_.holdings, command_.has_partitions, *name, free.ranks, module_.configured());
    if (allocation == nullptr) return;
    if (made_.contains(allocation)) return;
    const IdSet& all = allocation->resources.ranks();
    const IdSet ranks = free.ranks ? *free.ranks & all : all;
    if (free.ranks && !command_.repeat) {
      if (const IdSet unknown = *free.ranks - all; !unknown.empty())
        throw Error(EINVAL, fmt::format("rank {} is not in allocation {}", unknown.first(), text_of(*name)));
    }
    if (free.ranks && ranks.empty()) return;
    // A single allocation may be larger than the bound, as freed parts have divided its runs of targets.
    if (command_.frees.size() + command_.allocations.size() > 1)
      work_.add(Ledger::work_of(allocation->resources));
    if (!free.ranks || Ledger::ends_without(ranks, *allocation)) {
      ended_.insert(allocation);
      changes_[name->partition].freed += bytes_of(*allocation);
    } else if (!command_.allocations.empty()) {
      // The rest of the allocation has other runs of targets, so that its text may be longer.
      changes_[name->partition].freed += allocation->text->size();
      changes_[name->partition].added += allocation->resources.copy_ranks(all - ranks).encode().size();
    }
    if (!command_.allocations.empty())
      freed_.add(free.ranks ? allocation->resources.copy_ranks(ranks) : allocation->resources);
    FreeEvent& event = event_for(*name, free.ranks.has_value());
    event.ids.push_back(name->id);
    event.ranks |= ranks;
  }

  // Returns the event that has a free: one for whole allocations of a partition, and one for each part.
  FreeEvent& event_for(const AllocationName& name, bool partial) {
    const bool joins =
        !partial && !frees_.empty() && !frees_.back().partial && frees_.back().partition == name.partition;
    if (!joins) frees_.push_back({{}, {}, {}, partial, name.partition});
    return frees_.back();
  }

  // Adds an allocation; `present` is the one that has its name, if any.
  void add_allocation(const AllocationRequest& wanted, const AllocationName& name,
                      const Allocation* present) {
    check_in_inventory(wanted.resources, inventory());
    check_keys(wanted, inventory());
    if (present != nullptr && !ended_.contains(present))
      throw Error(EEXIST, fmt::format("allocation {} exists already", text_of(name)));
    check_usable(wanted.resources.ranks(), module_.drains().ranks(), module_.excluded(), inventory());
    check_free(wanted.resources, ledger(), freed_, inventory());
    check_apart(wanted.resources);
    alloc_.allocations.push_back(make_allocation(wanted, name.partition));
    changes_[name.partition].added += bytes_of(*alloc_.allocations.back());
    if (command_.allocations.size() > 1) together_.add(wanted.resources);
  }

  // Refuses resources that another allocation of this command has.
  void check_apart(const ResourceSet& wanted) const {
    const auto overlap = [](const HeldResources::HeldAt& held, const IdSet& numbers, const IdSet& ranks) {
      bool both = false;
      numbers.for_each([&](IdSet::Id number) {
        const auto at = held.find(number);
        both = both || (at != held.end() && at->second.intersects(ranks));
      });
      return both;
    };
    if (!together_.ranks.intersects(wanted.ranks())) return;
    for (const ResourceGroup& group : wanted.groups()) {
      if (!overlap(together_.cores, group.cores, group.ranks) &&
          !overlap(together_.gpus, group.gpus, group.ranks))
        continue;
      // A ledger of these allocations finds which one has them.
      Ledger others;
      others.apply(alloc_);
      check_free(wanted, others, {}, inventory());
    }
  }

  void add_update(const UpdateRequest& wanted, std::vector<EventBody>& events) {
    const std::optional<AllocationName> name = name_of(wanted, command_, ledger());
    const Allocation* const allocation = name ? ledger().find(*name) : nullptr;
    if (allocation == nullptr) refuse_unknown(wanted, name, ledger());
    if (command_.holdings && !has_partition(*command_.holdings, command_.has_partitions, *name))
      throw Error(EPERM, fmt::format("allocation {} is of another scheduler", text_of(*name)));
    AllocUpdateEvent event{*name};
    if (wanted.add) event.added = addition(wanted, *allocation);
    check_terms({wanted.id, {}, wanted.expiration, wanted.note});
    if (wanted.expiration && *wanted.expiration != allocation->expiration.value_or(WallTime{}))
      event.expiration = wanted.expiration;
    check_keys({wanted.id, event.added, command_.repeat ? event.expiration : wanted.expiration}, inventory());
    if (wanted.note && *wanted.note != allocation->note.value_or("")) event.note = wanted.note;
    if (!event.expiration && !event.note && event.added.empty()) return;
    // This refuses keys of a target that differ from those that the allocation has for it.
    const SharedAllocation next = updated(*allocation, event);
    changes_[name->partition].added += bytes_of(*next);
    changes_[name->partition].freed += bytes_of(*allocation);
    event.ranks = next->resources.ranks();
    event.nodelist = module_.configured().hosts(event.ranks);
    events.emplace_back(std::move(event));
  }

  // Refuses a command by which the ledger grows beyond its bound. One that only frees is never refused.
  void check_size() const {
    std::size_t added = 0;
    std::size_t freed = 0;
    for (const auto& [partition, change] : changes_) {
      added += change.added;
      freed += change.freed;
      if (command_.has_partitions && change.added > change.freed)
        check_size(ledger().bytes_of(partition) + change.added - change.freed, command_.max_bytes / 2,
                   fmt::format("partition {} would have", text::quoted(partition)),
                   "half of allocations.max-bytes");
    }
    if (added > freed)
      check_size(ledger().bytes() + added - freed, command_.max_bytes, "the ledger would have",
                 "allocations.max-bytes");
  }

  static void check_size(std::size_t size, std::size_t most, std::string_view what, std::string_view bound) {
    if (size <= most) return;
    throw Error(EDQUOT, fmt::format("{} {} bytes of allocations, more than {}, which is {}: free some, or "
                                    "raise that setting",
                                    what, size, bound, most));
  }

  // Returns the resources that an update adds to an allocation.
  [[nodiscard]] ResourceSet addition(const UpdateRequest& wanted, const Allocation& allocation) {
    AllocationRequest request{wanted.id, *wanted.add};
    if (command_.has_partitions) request.partition = allocation.name.partition;
    check_form(request);
    if (request.resources.scheduling() != nullptr)
      throw Error(EINVAL, fmt::format("allocation {}: add has scheduling", wanted.id));
    work_.add(Ledger::work_of(request.resources));
    // The ledger indexes the whole allocation anew.
    work_.add(Ledger::work_of(allocation.resources));
    // Targets of a repeated addition may have left the inventory or the partition meanwhile.
    if (command_.repeat && has_all(allocation.resources, request.resources)) return {};
    check_ranks(request.resources, inventory());
    (void)holding_of(request, command_.holdings.value_or(std::vector<Holding>{}), inventory());
    check_hosts(request.resources, inventory());
    if (command_.repeat) request.resources = rset::diff(request.resources, allocation.resources);
    if (request.resources.empty()) return {};
    check_in_inventory(request.resources, inventory());
    check_usable(request.resources.ranks(), module_.drains().ranks(), module_.excluded(), inventory());
    check_free(request.resources, ledger(), {}, inventory());
    // This refuses gpus that are left of a repeated addition without the cores of their target, which no R
    // can have.
    (void)request.resources.encode();
    return request.resources;
  }

  const Module& module_;
  const LedgerCommand& command_;
  Work work_;
  using Present = std::unordered_set<const Allocation*>;
  /// Allocations that the repeated command has made already.
  Present made_;
  /// The allocations that the command frees, and those of them that end.
  Present named_;
  Present ended_;
  HeldResources freed_;
  /// The resources of the allocations that the command makes, which must not overlap each other either.
  HeldResources together_;
  std::vector<FreeEvent> frees_;
  AllocEvent alloc_;
  /// The change of the allocations of a partition: by how many bytes, and the ids of those that are made.
  struct Change {
    std::size_t added = 0;
    std::size_t freed = 0;
    std::unordered_set<std::string_view> made;
  };
  std::map<std::string, Change> changes_;
};

}  // namespace

std::vector<Event> Module::decide_on(const LedgerCommand& command, WallTime now) const {
  RESOURCED_INVARIANT(command.holdings || command.allocations.empty());
  std::vector<Event> events;
  for (EventBody& body : LedgerDecision(*this, command).take()) events.push_back({now, std::move(body)});
  return events;
}

std::vector<Event> Module::free_expired(WallTime now) const {
  constexpr std::size_t most = 1000;
  std::map<std::string, FreeEvent> frees;
  Work work(inventory().ranks().count());
  for (const SharedAllocation& expired : ledger().expiring({}, now, most)) {
    if (!work.fits(Ledger::work_of(expired->resources)) && !frees.empty()) break;
    FreeEvent& free = frees[expired->name.partition];
    free.ids.push_back(expired->name.id);
    free.ranks |= expired->resources.ranks();
  }
  std::vector<Event> events;
  for (auto& [partition, free] : frees) {
    free.partition = partition;
    free.nodelist = configured().hosts(free.ranks);
    events.push_back({now, std::move(free)});
  }
  return events;
}

}  // namespace resourced::module
