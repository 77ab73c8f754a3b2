// Gathers which ranks get which resources and makes the groups of canonical R_lite from it (RFC 20): ranks
// with equal resources in one group, groups ordered by first rank. Cost follows the runs of ranks that are
// added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::rset {

class GroupTable {
 public:
  /// A distinct set of resources, known by its number.
  using Children = std::uint32_t;

  /// Treatment of a rank that is added more than once: its resources add up, and the same resource twice is
  /// refused or allowed.
  enum class Repeats { refused, allowed };

  struct Conflict {
    text::IdSet::Id rank;
    /// The source of the later of the additions that do not go together.
    std::size_t source;
    /// Continues the sentence "rank N".
    std::string text;
  };
  using Describe = std::function<Error(const Conflict&)>;

  Children children(const text::IdSet& cores, const text::IdSet& gpus,
                    const std::shared_ptr<const nlohmann::json>& extra);

  /// source is the caller's number for this addition, for the error.
  void add(const text::IdSet& ranks, Children children, std::size_t source);

  /// Throws the Error that `describe` returns for a conflict.
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
  };
  class Overlay;

  std::unordered_map<std::string, Children> numbers_;
  std::vector<Resources> resources_;
  std::vector<Run> runs_;
};

}  // namespace resourced::rset
