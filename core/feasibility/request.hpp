// The request of a job as schedulers and check_feasibility() need it, read from a jobspec (RFC 14, RFC 25).
// The short forms that people type are in core/jobspec/shape.hpp and core/constraint/query.hpp. The functions
// here and there may be called in any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/constraint/budget.hpp"
#include "core/constraint/constraint.hpp"
#include "core/jobspec/resource_graph.hpp"
#include "core/time.hpp"

#pragma GCC visibility push(default)
namespace resourced::feasibility {

struct Request {
  /// `resources` of the jobspec, with the keys that RFC 14 does not define.
  jobspec::ResourceGraph resources;
  /// `attributes.system.constraints` (RFC 31); without it every target matches.
  constraint::Constraint constraint;
  /// `attributes.system.duration`, the time limit; 0 means none.
  Seconds duration{};
};

/// Maximum size of a jobspec in bytes, and maximum nesting of its arrays and objects.
inline constexpr std::size_t max_jobspec_bytes = std::size_t{1} << 20;
inline constexpr std::size_t max_jobspec_depth = 256;

/// Reads the text of a jobspec, a JSON object, and ignores the keys that Request does not name. Throws Error
/// EINVAL that names the byte at which the text is no JSON, or the path of a key that is missing or wrong
/// (`resources[0].count: must be at least 1`); ERANGE for a constraint past its limits, and EFBIG for a text
/// that is too long.
[[nodiscard]] Request parse_request(std::string_view jobspec);

/// Returns resources and constraint of a jobspec without its duration, within a budget: throws Error
/// ETIMEDOUT when it is spent, and EINVAL or ERANGE as parse_request() does.
[[nodiscard, gnu::visibility("hidden")]] Request read_request(const nlohmann::json& jobspec,
                                                              constraint::Budget& budget);

}  // namespace resourced::feasibility
#pragma GCC visibility pop
