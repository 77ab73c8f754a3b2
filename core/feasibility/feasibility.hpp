// Whether a request could ever be satisfied by an inventory, were everything up and free (RFC 27
// feasibility). Nodes, slots, cores and gpus are judged, since R has no others (RFC 20). The scheduler
// chooses which of them a request gets.
//
// A slot without nodes in it is made inside one node, and shares that node with whatever else fits there.
// Every node that is asked for is a node of its own, also between the parts of a request; with `exclusive:
// true`, and in a slot unless `exclusive: false`, all of it is taken.
//
// The cost follows the groups of equal nodes. A request whose slots without nodes are all alike is always
// decided, as is nearly every other; packing.hpp tells the exact bounds.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/constraint/budget.hpp"
#include "core/constraint/constraint.hpp"
#include "core/feasibility/packing.hpp"
#include "core/jobspec/resource_graph.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::feasibility {

/// The answer, and one line that says why unless it is yes.
struct Feasibility {
  enum class Verdict {
    /// There is a way to place all of it.
    feasible,
    /// There is none; the reason names what is short (`needs 9 nodes with 2 gpus, the inventory has 8`).
    infeasible,
    /// Not known: the request names a type that R does not have, or it is one of the rare requests for which
    /// a bounded amount of work gives no answer. The reason says which.
    undecided,
  };

  Verdict verdict = Verdict::feasible;
  std::string reason;

  [[nodiscard]] bool feasible() const noexcept { return verdict == Verdict::feasible; }
};

/// Judges a request against the ranks of the inventory that match the constraint. The caller has removed
/// excluded ranks from the inventory. A count that is a range or a set stands for its smallest value. Throws
/// Error EINVAL for a slot without resources.
[[nodiscard]] Feasibility check_feasibility(const jobspec::ResourceGraph& resources,
                                            const constraint::Constraint& constraint,
                                            const rset::ResourceSet& inventory);
/// The same within a budget: throws Error ETIMEDOUT when it is spent.
[[nodiscard]] Feasibility check_feasibility(const jobspec::ResourceGraph& resources,
                                            const constraint::Constraint& constraint,
                                            const rset::ResourceSet& inventory, constraint::Budget& budget);

/// Judges a jobspec object by its `resources` and `attributes.system.constraints`; nothing else of it is
/// looked at. Throws Error EINVAL that names the path of what is missing or wrong.
[[nodiscard]] Feasibility check_jobspec_feasibility(const nlohmann::json& jobspec,
                                                    const rset::ResourceSet& inventory);
/// The same within a budget: throws Error ETIMEDOUT when it is spent.
[[nodiscard]] Feasibility check_jobspec_feasibility(const nlohmann::json& jobspec,
                                                    const rset::ResourceSet& inventory,
                                                    constraint::Budget& budget);

// Reduces a request (RFC 14) to the demand that pack() takes: counts of nodes with cores and gpus, and counts
// of pieces that lie in one node each. Levels, labels and slots of the request are not kept.

struct RequestDemand {
  /// Equal demands are merged, in the order of their first appearance.
  Demand demand;
  /// The parts of the request that R cannot express (`the type memory`); if this is not empty the demand is
  /// not complete.
  std::string not_judged;
};

/// Throws Error EINVAL for a slot without resources; with a budget ETIMEDOUT when it is spent.
[[nodiscard]] RequestDemand demand_of(const jobspec::ResourceGraph& resources);
[[nodiscard]] RequestDemand demand_of(const jobspec::ResourceGraph& resources, constraint::Budget& budget);

}  // namespace resourced::feasibility
