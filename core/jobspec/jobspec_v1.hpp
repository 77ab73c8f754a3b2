// Jobspec version 1 (RFC 25): the request to run one program on nodes, slots, cores and gpus. Checks a
// document that document.hpp has read; whether an inventory could satisfy it is the business of
// feasibility.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/jobspec/resource_graph.hpp"

namespace resourced {

/// The RFC has become stricter. The present edition wants one task for each slot, or a total of at most the
/// number of slots and at least the number of nodes.
enum class V1Edition { lenient, strict };

/// Checks a jobspec. `exclusive` may stand at a node, as the RFC's text has it, and at a slot, as its schema
/// has it. Keys beyond those of the RFC are refused except at the top and in `attributes.system`. Throws
/// Error EINVAL (ERANGE for a constraint past its limits), `resources[0].with[0].count: must be at least 1`.
void check_jobspec_v1(const nlohmann::json& jobspec, V1Edition edition = V1Edition::lenient);

/// Whether a graph is one that version 1 has: slot>core, node>slot>core, slot>(core,gpu),
/// node>slot>(core,gpu), with integer counts and nothing that its schema does not know.
[[nodiscard]] bool is_v1_graph(const ResourceGraph& resources);

}  // namespace resourced
