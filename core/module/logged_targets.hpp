// The targets of an instance as its event log names them (RFC 44): each restart may number them anew, and
// tells ranks and hosts of those that are left. A target keeps its name (target_names.hpp) through all of
// that, as its ordinal counts those of its host that left for good, too.
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
  /// The ranks and hosts from now on; none are known where their counts differ or there are none. Returns, in
  /// order, the hosts with more targets than were left of them: another R with those that had left was loaded
  /// since, so none of the host's targets is gone any more, and their ordinals count anew.
  std::vector<std::string> restart(const text::IdSet& ranks, const text::Hostlist& hosts);
  /// A target leaves for good. Ranks stay what they are until the next restart.
  void shrink(const TargetName& name) { left_.insert(name); }
  /// Another R with all targets of a host was loaded, so those that had left are present again.
  void take_back(const std::string& host);

  /// Ranks and hosts of the last restart. Their cores are placeholders.
  [[nodiscard]] const rset::ResourceSet& present() const noexcept { return present_; }
  /// Nothing for a rank that the last restart did not have.
  [[nodiscard]] std::optional<TargetName> name_of(text::IdSet::Id rank) const;
  /// Nothing for a target that the last restart did not have.
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(const TargetName& name) const;
  /// The ordinal of the n-th target of a host, from 0, of those that had not left at the last restart.
  [[nodiscard]] std::uint32_t ordinal_of(const std::string& host, std::uint32_t nth) const;

 private:
  struct Gone {
    std::set<std::uint32_t> ordinals;
    // How many targets of the host were left, if a restart has told.
    std::optional<std::uint32_t> remaining;
  };

  [[nodiscard]] std::uint32_t count_of(const std::string& host) const;

  rset::ResourceSet present_;
  // The targets that left before the last restart, by host; left_ has those that left since.
  std::map<std::string, Gone, std::less<>> gone_;
  std::set<TargetName> left_;
};

}  // namespace resourced::module
