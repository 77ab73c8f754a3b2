// One request of a user: a shape (RFC 46), with a query (RFC 35) where it matters which targets serve it, or
// a jobspec (RFC 14, RFC 25).
#pragma once

#include <cstdint>
#include <string_view>

#include "core/constraint/constraint.hpp"
#include "core/feasibility/feasibility.hpp"
#include "core/jobspec/resource_graph.hpp"
#include "core/time.hpp"

namespace resourced::fifo {

struct Request {
  jobspec::ResourceGraph resources;
  constraint::Constraint constraint;
  /// The resources once more, as what has to be packed. A count that is a range stands for its smallest
  /// value.
  feasibility::Demand demand;
  /// nslots of the allocation; a request without slots counts as one.
  std::uint64_t slots = 1;
  /// 0 is as long as the resources last.
  Seconds duration{};
};

/// Reads `SHAPE`, `SHAPE where QUERY`, or a jobspec as JSON, of which only `resources` and in
/// `attributes.system` `constraints` and `duration` are looked at. Throws Error that says what is wrong.
[[nodiscard]] Request read_request(std::string_view line);

}  // namespace resourced::fifo
