// The targets of an instance by the events of its log (RFC 44): each restart may number them anew, and tells
// ranks and hosts of those that are left. A target keeps its name (target_names.hpp) through all restarts, as
// its ordinal counts the targets of its host that left for good, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/module/target_names.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

class LoggedTargets {
 public:
  /// Takes the ranks and hosts of a restart event. They are unknown if their counts differ or there are none.
  /// Returns, in order, the hosts with more targets than were left: another R with the targets that had left
  /// was loaded since, so none of the host's targets is gone any more, and their ordinals count anew.
  std::vector<std::string> restart(const text::IdSet& ranks, const text::Hostlist& hosts);
  /// Removes a target that leaves for good. Ranks stay what they are until the next restart.
  void shrink(const TargetName& name) { left_.insert(name); }
  /// Returns whether a target has left since the last restart.
  [[nodiscard]] bool has_left(const TargetName& name) const { return left_.contains(name); }
  /// Takes all targets of a host back that had left, as another R with all of them was loaded.
  void take_back(const std::string& host);

  /// Ranks and hosts of the last restart, with placeholders for cores.
  [[nodiscard]] const rset::ResourceSet& present() const noexcept { return present_; }
  /// Returns the name of the target with this rank; nothing if the last restart did not have the rank.
  [[nodiscard]] std::optional<TargetName> name_of(text::IdSet::Id rank) const;
  /// Returns the rank of a target; nothing if the last restart did not have the target.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(const TargetName& name) const;
  /// Returns the ordinal of the n-th target, from 0, among those of a host that had not left at the last
  /// restart.
  [[nodiscard]] std::uint32_t ordinal_of(const std::string& host, std::uint32_t nth) const;

 private:
  struct Gone {
    std::set<std::uint32_t> ordinals;
    // Number of targets of the host that were left, if a restart event has told it.
    std::optional<std::uint32_t> remaining;
  };

  [[nodiscard]] std::uint32_t count_of(const std::string& host) const;

  rset::ResourceSet present_;
  // The targets that left before the last restart, by host; `left_` has those that left since.
  std::map<std::string, Gone, std::less<>> gone_;
  std::set<TargetName> left_;
};

}  // namespace resourced::module
