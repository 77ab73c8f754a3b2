// Whether a request could ever be satisfied by an inventory, were everything up and free (RFC 27
// feasibility). Nodes, slots, cores and gpus are judged, since R has no others (RFC 20). Where a place would
// be at a given moment is the scheduler's business.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/request/constraint.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced {

/// The answer, and one line that says why unless it is yes.
struct Feasibility {
  enum class Verdict {
    /// There is a way to place all of it.
    feasible,
    /// There is none; the reason names what is short (`needs 9 nodes with 2 gpus, the inventory has 8`).
    infeasible,
    /// Not known: the request names a type that R does not have, or is one of the rare requests whose answer
    /// would
    /// take more work than a check may cost. The reason says which.
    undecided,
  };

  Verdict verdict = Verdict::feasible;
  std::string reason;

  [[nodiscard]] bool feasible() const noexcept { return verdict == Verdict::feasible; }
};

/// Judges an RFC 14 resources list against the ranks of the inventory that match the constraint. The
/// inventory is what may be used at all: excluded ranks are already gone from it. A count that is a range or
/// a set stands for its smallest value. Throws Error EINVAL for a list that is not valid.
[[nodiscard]] Feasibility check_feasibility(const nlohmann::json& resources, const Constraint& constraint,
                                            const ResourceSet& inventory);

/// Judges a jobspec object by its `resources` and `attributes.system.constraints`; nothing else of it is
/// looked at. Throws Error EINVAL that names the path of what is missing or wrong.
[[nodiscard]] Feasibility check_jobspec_feasibility(const nlohmann::json& jobspec,
                                                    const ResourceSet& inventory);

}  // namespace resourced
