// Decisions on allocations. The reasons to refuse an alloc are checked in this order: the work, the form,
// targets that the inventory does not have, targets that the scheduler does not hold, what the request frees,
// resources, keys, times and properties that the inventory does not have, an id that is taken, targets that
// are drained or excluded, resources that are held.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/invariant.hpp"
#include "core/module/module.hpp"
#include "core/rset/operations.hpp"
#include "core/text/quote.hpp"

namespace resourced::module {

using rset::ResourceGroup;
using rset::ResourceSet;
using text::IdSet;

namespace {

constexpr std::size_t most_id_characters = 64;
constexpr std::size_t most_note_bytes = 1024;

// Whether a text may be the id of an allocation. It comes from JSON, so it is valid UTF-8.
bool is_id(std::string_view id) {
  constexpr unsigned char first_printable = 0x20;
  constexpr unsigned char del = 0x7f;
  std::size_t characters = 0;
  unsigned char before = 0;
  for (const char byte : id) {
    const auto value = static_cast<unsigned char>(byte);
    // U+0080 to U+009F are control characters, too.
    if (value < first_printable || value == del || (before == 0xc2 && value < 0xa0)) return false;
    if ((value & 0xc0U) != 0x80U) ++characters;
    before = value;
  }
  return characters >= 1 && characters <= most_id_characters;
}

void check_terms(const AllocationRequest& wanted) {
  if (wanted.note && wanted.note->size() > most_note_bytes) {
    throw Error(EINVAL, fmt::format("allocation {}: the note has {} bytes, more than {}", wanted.id,
                                    wanted.note->size(), most_note_bytes));
  }
  if (wanted.expiration && (!std::isfinite(to_number(*wanted.expiration)) || *wanted.expiration < WallTime{}))
    throw Error(EINVAL, fmt::format("allocation {}: expiration must be a time, or 0 for none", wanted.id));
}

void check_form(const AllocationRequest& wanted) {
  if (!is_id(wanted.id)) {
    throw Error(EINVAL, fmt::format("the id of an allocation must have 1 to {} printable characters",
                                    most_id_characters));
  }
  if (wanted.resources.empty())
    throw Error(EINVAL, fmt::format("allocation {}: R has no targets", wanted.id));
  check_terms(wanted);
}

// Bounds the work of one request to some 1 ms, so that it does not delay others. An allocation of all
// resources of all targets is within the bound, as an inventory of many targets has runs of them.
class Work {
 public:
  explicit Work(std::size_t targets) : most_(least_bound + targets) {}

  void add(std::size_t work) {
    sum_ += work;
    if (sum_ <= most_) return;
    throw Error(EMSGSIZE,
                "the request names too many cores, gpus and targets; name fewer, or fewer allocations");
  }

 private:
  static constexpr std::size_t least_bound = 30000;
  std::size_t most_;
  std::size_t sum_ = 0;
};

// Returns the rank at a position among the sorted ranks.
IdSet::Id nth(const IdSet& ranks, std::size_t position) {
  std::size_t before = 0;
  IdSet::Id found = ranks.first();
  ranks.for_each_range([&](IdSet::Range run) {
    const std::size_t size = std::size_t{run.last} - run.first + 1;
    if (before <= position && position < before + size)
      found = static_cast<IdSet::Id>(run.first + (position - before));
    before += size;
  });
  return found;
}

void check_ranks(const ResourceSet& wanted, const ResourceSet& inventory) {
  if (const IdSet unknown = wanted.ranks() - inventory.ranks(); !unknown.empty())
    throw Error(EINVAL, fmt::format("rank {} is not in the inventory", unknown.first()));
}

void check_hosts(const ResourceSet& wanted, const ResourceSet& inventory) {
  if (inventory.hosts(wanted.ranks()) == wanted.nodelist()) return;
  std::vector<std::string> named;
  wanted.nodelist().for_each([&](std::string_view host) { named.emplace_back(host); });
  std::size_t same = 0;
  std::size_t position = 0;
  inventory.hosts(wanted.ranks()).for_each([&](std::string_view host) {
    if (position == same && named[position] == host) ++same;
    ++position;
  });
  const IdSet::Id odd = nth(wanted.ranks(), same);
  throw Error(EINVAL, fmt::format("rank {} is {}, not {}", odd, inventory.host(odd), named[same]));
}

void check_included(const ResourceGroup& wanted, const ResourceGroup& present, const IdSet& ranks,
                    const ResourceSet& inventory) {
  if (const IdSet cores = wanted.cores - present.cores; !cores.empty()) {
    throw Error(EINVAL, fmt::format("{} has no core{}", inventory.host(ranks.first()), cores.first()));
  }
  if (const IdSet gpus = wanted.gpus - present.gpus; !gpus.empty()) {
    throw Error(EINVAL, fmt::format("{} has no gpu{}", inventory.host(ranks.first()), gpus.first()));
  }
}

void check_in_inventory(const ResourceSet& wanted, const ResourceSet& inventory) {
  check_hosts(wanted, inventory);
  if (inventory.groups().size() == 1) {
    for (const ResourceGroup& group : wanted.groups())
      check_included(group, inventory.groups().front(), group.ranks, inventory);
    return;
  }
  for_each_pair(wanted, inventory,
                [&](const IdSet& ranks, const ResourceGroup* group, const ResourceGroup* present) {
                  if (group != nullptr) check_included(*group, *present, ranks, inventory);
                });
}

// Refuses the parts of an R, beside its resources, that differ from the inventory.
void check_keys(const AllocationRequest& wanted, const ResourceSet& inventory) {
  const ResourceSet& resources = wanted.resources;
  if (const auto key = resources.unlike_execution_key(inventory)) {
    throw Error(
        EINVAL,
        fmt::format("allocation {}: execution.{} is not a key of RFC 20, nor the same in the inventory; "
                    "leave it out, or put it into scheduling",
                    wanted.id, *key));
  }
  const WallTime end = std::max(wanted.expiration.value_or(WallTime{}), resources.expiration());
  if (inventory.expiration() != WallTime{} && end > inventory.expiration()) {
    throw Error(EINVAL, fmt::format("allocation {}: expiration {} is after that of the resource set, {}",
                                    wanted.id, to_number(end), to_number(inventory.expiration())));
  }
  // The scheduler may have sent the alloc before it read of the change.
  for (const auto& [name, ranks] : resources.properties()) {
    const auto present = inventory.properties().find(name);
    const IdSet without = present == inventory.properties().end() ? ranks : ranks - present->second;
    if (without.empty()) continue;
    throw Error(ESTALE, fmt::format("allocation {}: rank {} ({}) has no property {}; allocate again once "
                                    "resource.acquire has told of the change",
                                    wanted.id, without.first(), inventory.host(without.first()), name));
  }
}

IdSet all_of(const std::vector<Holding>& holdings) {
  IdSet all;
  for (const Holding& holding : holdings) all |= holding.targets;
  return all;
}

// Refuses an alloc of targets that are drained or excluded: an operator relies on a drained, idle target to
// stay idle, and a scheduler may send an alloc before it reads of the drain. A target that is merely offline
// or torpid may be up again at any time.
void check_usable(const IdSet& wanted, const IdSet& drained, const IdSet& excluded,
                  const ResourceSet& inventory) {
  const auto check = [&](const IdSet& unusable, std::string_view state) {
    if (!wanted.intersects(unusable)) return;
    const IdSet::Id rank = (wanted & unusable).first();
    throw Error(EHOSTDOWN, fmt::format("rank {} ({}) is {}", rank, inventory.host(rank), state));
  };
  check(drained, "drained");
  check(excluded, "excluded");
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
  const IdSet others = found == holdings.end() ? ranks : ranks - found->targets;
  if (others.empty()) return *found;
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
void check_frees(const std::vector<Holding>& holdings, bool has_partitions, const Allocation& allocation,
                 const std::optional<IdSet>& ranks, const ResourceSet& configured) {
  if (has_partition(holdings, has_partitions, allocation.name)) return;
  if (!ranks) {
    throw Error(EPERM, fmt::format("allocation {} is of another scheduler: free the targets that you have by "
                                   "their ranks",
                                   text_of(allocation.name)));
  }
  if (const IdSet others = *ranks - all_of(holdings); !others.empty()) {
    const IdSet::Id rank = others.first();
    if (!configured.ranks().contains(rank))
      throw Error(EINVAL, fmt::format("rank {} is not in allocation {}", rank, text_of(allocation.name)));
    throw Error(EPERM, fmt::format("allocation {}: rank {} ({}) is not acquired", text_of(allocation.name),
                                   rank, configured.host(rank)));
  }
}

bool is_equal(const Allocation& allocation, const AllocationRequest& wanted) {
  return allocation.absent.empty() && allocation.resources == wanted.resources &&
         allocation.expiration.value_or(WallTime{}) == wanted.expiration.value_or(WallTime{}) &&
         allocation.note.value_or("") == wanted.note.value_or("");
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
    std::vector<AllocationName> names;
    for (const AllocationRequest& wanted : command_.allocations) {
      check_form(wanted);
      check_ranks(wanted.resources, inventory());
      names.push_back({holding_of(wanted, *command_.holdings, inventory()).partition, wanted.id});
      const Allocation* const present = ledger().find(names.back());
      if (command_.repeat && present != nullptr && is_equal(*present, wanted)) made_.insert(names.back());
    }
    for (const FreeRequest& free : command_.frees) add_free(free);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!made_.contains(names[i])) add_allocation(command_.allocations[i], names[i]);

    std::vector<EventBody> events;
    for (FreeEvent& event : frees_) {
      event.nodelist = module_.configured().hosts(event.ranks);
      events.emplace_back(std::move(event));
    }
    if (!alloc_.allocations.empty()) events.emplace_back(std::move(alloc_));
    if (command_.update) add_update(*command_.update, events);
    return events;
  }

 private:
  [[nodiscard]] const Ledger& ledger() const { return module_.ledger(); }
  [[nodiscard]] const ResourceSet& inventory() const { return module_.inventory(); }

  void add_free(const FreeRequest& free) {
    if (free.ranks && free.ranks->empty())
      throw Error(EINVAL, fmt::format("allocation {}: ranks is empty", free.id));
    const std::optional<AllocationName> name = name_of(free, command_, ledger());
    const Allocation* const allocation = name ? ledger().find(*name) : nullptr;
    if (allocation == nullptr) {
      if (command_.repeat) return;
      refuse_unknown(free, name, ledger());
    }
    if (!named_.insert(*name).second)
      throw Error(EINVAL, fmt::format("allocation {} is named twice", text_of(*name)));
    if (command_.holdings)
      check_frees(*command_.holdings, command_.has_partitions, *allocation, free.ranks, module_.configured());
    if (made_.contains(*name)) return;
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
    if (!free.ranks || Ledger::ends_without(ranks, *allocation)) ended_.insert(*name);
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

  void add_allocation(const AllocationRequest& wanted, const AllocationName& name) {
    check_in_inventory(wanted.resources, inventory());
    check_keys(wanted, inventory());
    const bool is_taken = ledger().find(name) != nullptr && !ended_.contains(name);
    if (is_taken || together_.find(name) != nullptr)
      throw Error(EEXIST, fmt::format("allocation {} exists already", text_of(name)));
    check_usable(wanted.resources.ranks(), module_.drains().ranks(), module_.excluded(), inventory());
    check_free(wanted.resources, ledger(), freed_, inventory());
    check_free(wanted.resources, together_, {}, inventory());
    alloc_.allocations.push_back(make_allocation(wanted, name.partition));
    if (command_.allocations.size() > 1) together_.apply(AllocEvent{{alloc_.allocations.back()}});
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
    check_keys({wanted.id, event.added, wanted.expiration}, inventory());
    if (wanted.expiration && *wanted.expiration != allocation->expiration.value_or(WallTime{}))
      event.expiration = wanted.expiration;
    if (wanted.note && *wanted.note != allocation->note.value_or("")) event.note = wanted.note;
    if (!event.expiration && !event.note && event.added.empty()) return;
    event.ranks = allocation->resources.ranks() | event.added.ranks();
    event.nodelist = module_.configured().hosts(event.ranks);
    events.emplace_back(std::move(event));
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
    check_ranks(request.resources, inventory());
    (void)holding_of(request, command_.holdings.value_or(std::vector<Holding>{}), inventory());
    check_in_inventory(request.resources, inventory());
    if (command_.repeat) request.resources = rset::diff(request.resources, allocation.resources);
    if (request.resources.empty()) return {};
    check_usable(request.resources.ranks(), module_.drains().ranks(), module_.excluded(), inventory());
    check_free(request.resources, ledger(), {}, inventory());
    // These refuse keys of a target that differ from those that the allocation has for it, and gpus that are
    // left of a repeated addition without the cores of their target, which no R can have.
    (void)rset::append(allocation.resources, request.resources);
    (void)request.resources.encode();
    return request.resources;
  }

  const Module& module_;
  const LedgerCommand& command_;
  Work work_;
  /// Allocations that the repeated command has made already.
  std::set<AllocationName> made_;
  /// The allocations that the command frees, and those of them that end.
  std::set<AllocationName> named_;
  std::set<AllocationName> ended_;
  HeldResources freed_;
  /// The allocations of this command, which must not overlap each other either.
  Ledger together_;
  std::vector<FreeEvent> frees_;
  AllocEvent alloc_;
};

}  // namespace

std::vector<Event> Module::decide_on(const LedgerCommand& command, WallTime now) const {
  RESOURCED_INVARIANT(command.holdings || command.allocations.empty());
  std::vector<Event> events;
  for (EventBody& body : LedgerDecision(*this, command).take()) events.push_back({now, std::move(body)});
  return events;
}

}  // namespace resourced::module
