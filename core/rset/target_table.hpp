// Maps between ranks, R_lite groups and hosts of a resource set. The table is immutable, so the copies of a
// resource set share it. A program that links the client library may read such copies in threads of its own:
// the indices that are built on first use are built under std::call_once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::rset {

class TargetTable {
 public:
  TargetTable();
  ~TargetTable();
  TargetTable(const TargetTable&) = delete;
  TargetTable& operator=(const TargetTable&) = delete;
  TargetTable(TargetTable&&) = delete;
  TargetTable& operator=(TargetTable&&) = delete;
  /// Requires groups with disjoint ranks, ordered by first rank, no two with equal resources, and as many
  /// hosts as ranks.
  TargetTable(std::vector<ResourceGroup> groups, text::Hostlist hosts);

  [[nodiscard]] const text::IdSet& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::vector<ResourceGroup>& groups() const noexcept { return groups_; }
  [[nodiscard]] const text::Hostlist& hosts() const noexcept { return hosts_; }

  [[nodiscard]] std::optional<std::size_t> position(text::IdSet::Id rank) const;
  /// Returns the positions of ranks; ranks that the table lacks are ignored.
  [[nodiscard]] text::IdSet positions(const text::IdSet& ranks) const;
  [[nodiscard]] std::optional<text::IdSet::Id> rank_of(std::string_view host, std::uint32_t ordinal) const;
  [[nodiscard]] std::uint32_t ordinal_of(text::IdSet::Id rank) const;
  [[nodiscard]] bool hosts_repeat() const;
  /// Returns all ranks of the hosts of a list, and the unknown hosts: at most one more than `most_unknown`,
  /// after which the search ends. Costs as HostIndex::find(), and the number of ranks where hosts repeat.
  [[nodiscard]] HostSearch ranks_of(const text::Hostlist& hosts, std::size_t most_unknown) const;

 private:
  /// Finds targets by their hosts.
  struct Index;

  /// Returns the index, which the first call builds.
  [[nodiscard]] const Index& index() const;
  [[nodiscard]] text::IdSet ranks_at(const std::vector<text::IdSet::Range>& found) const;
  /// Consecutive ranks, and the position of the first of them.
  struct Run {
    text::IdSet::Id first;
    text::IdSet::Id last;
    std::size_t position;
  };

  text::IdSet ranks_;
  std::vector<ResourceGroup> groups_;
  text::Hostlist hosts_;
  std::vector<Run> runs_;
  // Most of the tables are those of allocations, in which nobody looks for a host.
  mutable std::once_flag index_built_;
  mutable std::unique_ptr<const Index> index_;
};

/// Whether hosts repeat in a list. Also true for a list with so many overlaps that the check would take long.
[[nodiscard]] inline bool has_repeats(const text::Hostlist& hosts) {
  text::Hostlist distinct = hosts;
  try {
    distinct.unique();
  } catch (const Error&) {
    return true;
  }
  return distinct.size() != hosts.size();
}

}  // namespace resourced::rset
