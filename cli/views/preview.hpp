// The view of `drain --dry-run`: the effect that a drain would have, and the capacity that it would leave.
// Pure functions of answers of the daemon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

/// How a drain treats targets that are drained already, as the modes of resource.drain.
enum class DrainedAlready { refused, skipped, reason_replaced, replaced };

struct DrainPreview {
  /// Targets that would be drained, or whose drain would change.
  text::IdSet changed;
  /// The targets that are drained already, by reason.
  struct Drained {
    text::IdSet ranks;
    std::string reason;
    DrainedAlready then = DrainedAlready::refused;
  };
  std::vector<Drained> drained;
  text::IdSet excluded;
  /// Whether the daemon would refuse the drain as a whole.
  [[nodiscard]] bool is_refused() const;

  struct Allocated {
    module::AllocationName name;
    /// The targets of the allocation that the drain names.
    text::IdSet ranks;
  };
  std::vector<Allocated> allocations;

  /// Counts of targets that are online and neither drained, torpid nor excluded: of the inventory, a property
  /// or a partition.
  struct Capacity {
    std::string name;
    rset::ResourceCounts now;
    rset::ResourceCounts after;
  };
  std::vector<Capacity> left;
};

struct PlannedDrain {
  text::IdSet targets;
  std::optional<std::string> reason;
  DrainedAlready mode = DrainedAlready::refused;
};

[[nodiscard]] DrainPreview preview_drain(const PlannedDrain& plan, const proto::topics::Status& status,
                                         const std::vector<proto::topics::ListedAllocation>& allocations);

/// Returns lines of text, each with its line end.
[[nodiscard]] std::string render_preview(const DrainPreview& preview, const PlannedDrain& plan,
                                         const rset::ResourceSet& inventory);
[[nodiscard]] nlohmann::ordered_json preview_json(const DrainPreview& preview, const PlannedDrain& plan,
                                                  const rset::ResourceSet& inventory);

}  // namespace resourced::cli::views
