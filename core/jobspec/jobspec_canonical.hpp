// Canonical jobspec (RFC 14): any number of vertices of any type, and any number of tasks. Checks a document
// that document.hpp has read; what of it can be judged is the business of feasibility.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/jobspec/resource_graph.hpp"

namespace resourced {

/// Checks a jobspec of whatever version against the RFC's prose: beyond its schema each task names the label
/// of a slot, per_resource a type in that slot, an environment has strings and nulls. With the edition
/// `schema` what the schema refuses is refused, too. Throws Error EINVAL (ERANGE for a constraint past its
/// limits), `tasks[1].count: must have ...`.
void check_canonical_jobspec(const nlohmann::json& jobspec,
                             CanonicalEdition edition = CanonicalEdition::prose);

}  // namespace resourced
