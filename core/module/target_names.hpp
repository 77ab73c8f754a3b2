// Names of targets, by which state survives a renumbering: an execution target is known by its host and,
// where several ranks share the host, by its ordinal among them in the inventory as it was configured,
// discovered or loaded. Targets that left for good keep their ordinals there, so that the ordinals of the
// others do not change.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

struct TargetName {
  std::string host;
  /// Ordinal of the target among those of its host, as ResourceSet::rank_of() takes it.
  std::uint32_t ordinal = 0;
  friend auto operator<=>(const TargetName&, const TargetName&) = default;
};

/// Several targets by name, in rank order.
struct TargetNames {
  text::Hostlist hosts;
  /// Ordinals of the targets in the order of `hosts`; empty if all are 0.
  std::vector<std::uint32_t> ordinals;

  [[nodiscard]] bool empty() const noexcept { return hosts.empty(); }
  void append(const TargetName& name);

  /// Calls f(host, ordinal) for each target.
  template <class F>
  void for_each(F&& f) const {
    std::size_t position = 0;
    hosts.for_each([&](std::string_view host) {
      f(host, ordinals.empty() ? std::uint32_t{0} : ordinals[position]);
      ++position;
    });
  }
};

/// Returns the names of these ranks of an inventory as it was configured. Ignores ranks that it lacks.
[[nodiscard]] TargetNames names_of(const text::IdSet& ranks, const rset::ResourceSet& configured);

/// Returns the present rank of a target, or nothing if its host has no such target any more.
[[nodiscard]] inline std::optional<text::IdSet::Id> rank_of(const TargetName& name,
                                                            const rset::ResourceSet& configured) {
  return configured.rank_of(name.host, name.ordinal);
}

}  // namespace resourced::module
