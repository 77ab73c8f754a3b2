// Decides whether an inventory could ever satisfy a request, if everything were up and free (RFC 27
// feasibility). Only nodes, slots, cores and gpus count, since R has no others (RFC 20). The scheduler
// chooses which of them a request gets.
//
// A slot that contains no nodes is made inside one node, and shares that node with whatever else fits there.
// Each requested node is a different node, also across the parts of a request. It is taken whole with
// `exclusive: true`, and in a slot unless `exclusive: false`.
//
// The cost follows the groups of equal nodes. A request whose slots without nodes are all alike is always
// decided, as is nearly every other. Different kinds of such slots together are a question of bin packing: if
// a bounded amount of work (a fraction of a second) does not decide it, the answer says so.
//
// The functions may be called in any thread; a budget is for one thread.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/constraint/budget.hpp"
#include "core/constraint/constraint.hpp"
#include "core/jobspec/resource_graph.hpp"
#include "core/rset/resource_set.hpp"

#pragma GCC visibility push(default)
namespace resourced::feasibility {

/// The verdict, with a reason of one line unless it is `feasible`.
struct Feasibility {
  enum class Verdict {
    /// The request can be placed.
    feasible,
    /// The request cannot be placed; the reason names the missing resources (`needs 9 nodes with 2 gpus, the
    /// inventory has 8`).
    infeasible,
    /// The verdict is not known: the request names a type that R does not have, or a bounded amount of work
    /// gives no answer, which is rare. The reason says which.
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

/// Judges a jobspec object by its `resources` and `attributes.system.constraints`, and ignores the rest.
/// Throws Error EINVAL that names the path of a missing or wrong key.
[[nodiscard, gnu::visibility("hidden")]] Feasibility check_jobspec_feasibility(
    const nlohmann::json& jobspec, const rset::ResourceSet& inventory);
/// The same within a budget: throws Error ETIMEDOUT when it is spent.
[[nodiscard, gnu::visibility("hidden")]] Feasibility check_jobspec_feasibility(
    const nlohmann::json& jobspec, const rset::ResourceSet& inventory, constraint::Budget& budget);

}  // namespace resourced::feasibility
#pragma GCC visibility pop
