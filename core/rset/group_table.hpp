// Collects the resources of each rank and makes the groups of canonical R_lite (RFC 20): ranks with equal
// resources in one group, groups ordered by first rank. Cost follows the runs of ranks that are added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset_builder.hpp"

namespace resourced::rset {

class GroupTable {
 public:
  /// Number of a distinct set of resources.
  using Children = std::uint32_t;

  /// Treatment of a rank that is added more than once: its resources add up, and adding the same resource
  /// twice is refused or allowed.
  enum class Repeats { refused, allowed };

  struct Conflict {
    text::IdSet::Id rank;
    /// The source of the later one of two conflicting additions.
    std::size_t source;
    /// Description of the conflict, to be printed after "rank N".
    std::string text;
  };
  using Describe = std::function<Error(const Conflict&)>;

  Children children(text::IdSet cores, text::IdSet gpus, std::shared_ptr<const nlohmann::json> extra);

  /// Adds resources to ranks. `source` is the caller's number for this addition, for an error.
  void add(const text::IdSet& ranks, Children children, std::size_t source);

  /// Makes the groups, which take the resources of the table: it must not be used afterwards. Throws the
  /// Error that `describe` returns for a conflict.
  [[nodiscard]] std::vector<ResourceGroup> finish(Repeats repeats, const Describe& describe);

 private:
  struct Run {
    text::IdSet::Id first;
    text::IdSet::Id last;
    Children children;
    std::uint32_t source;
  };
  struct Resources {
    text::IdSet cores;
    text::IdSet gpus;
    std::shared_ptr<const nlohmann::json> extra;
    /// The position of their group, and its ranks, while finish() makes the groups.
    std::optional<std::size_t> group;
    text::IdSetBuilder ranks;
  };
  class Overlay;

  [[nodiscard]] static std::string key_of(const Resources& resources);

  /// The numbers of resources by their text; empty while there are one or none.
  std::unordered_map<std::string, Children> numbers_;
  std::vector<Resources> resources_;
  std::vector<Run> runs_;
};

}  // namespace resourced::rset
