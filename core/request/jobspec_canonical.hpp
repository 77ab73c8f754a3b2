// Canonical jobspec (RFC 14): any number of vertices of any type, and any number of tasks. Checks a document
// that document.hpp has read; what of it can be judged is the business of feasibility.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace resourced {

/// Checks a jobspec of whatever version against the RFC's schema, and that each task names the label of a
/// slot. Throws Error EINVAL (ERANGE for a constraint past its limits), `tasks[1].count: must have ...`.
void check_canonical_jobspec(const nlohmann::json& jobspec);

}  // namespace resourced
