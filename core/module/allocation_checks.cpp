#include "core/module/allocation_checks.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"

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

void check_included(const ResourceGroup& wanted, const ResourceGroup& present, IdSet::Id rank,
                    const ResourceSet& inventory) {
  const auto check = [&](const IdSet& numbers, const IdSet& known, std::string_view kind) {
    if (known.includes(numbers)) return;
    throw Error(EINVAL, fmt::format("{} has no {}{}", inventory.host(rank), kind, (numbers - known).first()));
  };
  check(wanted.cores, present.cores, "core");
  check(wanted.gpus, present.gpus, "gpu");
}

}  // namespace

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

void check_ranks(const ResourceSet& wanted, const ResourceSet& inventory) {
  if (inventory.ranks().includes(wanted.ranks())) return;
  throw Error(EINVAL,
              fmt::format("rank {} is not in the inventory", (wanted.ranks() - inventory.ranks()).first()));
}

void check_hosts(const ResourceSet& wanted, const ResourceSet& inventory) {
  if (inventory.has_hosts(wanted.ranks(), wanted.nodelist())) return;
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

void check_in_inventory(const ResourceSet& wanted, const ResourceSet& inventory) {
  check_hosts(wanted, inventory);
  for (const ResourceGroup& group : wanted.groups()) {
    for (const ResourceGroup& present : inventory.groups()) {
      if (const auto rank = group.ranks.first_shared(present.ranks))
        check_included(group, present, *rank, inventory);
    }
  }
}

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
    throw Error(ESTALE, fmt::format("allocation {}: rank {} ({}) does not have property {}: allocate again "
                                    "without it",
                                    wanted.id, without.first(), inventory.host(without.first()), name));
  }
}

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

}  // namespace resourced::module
