#include "docs/examples/fifo_scheduler/request.hpp"

#include <algorithm>
#include <utility>

#include "core/constraint/budget.hpp"
#include "core/constraint/query.hpp"
#include "core/feasibility/request.hpp"
#include "core/feasibility/request_demand.hpp"
#include "core/jobspec/shape.hpp"

namespace resourced::fifo {

namespace {

constexpr std::string_view where = " where ";

Request read_shape(std::string_view line) {
  Request request;
  const std::size_t end = line.find(where);
  request.resources = jobspec::parse_shape(line.substr(0, end));
  if (end != std::string_view::npos)
    request.constraint = constraint::parse_query(line.substr(end + where.size()));
  return request;
}

Request read_jobspec(std::string_view line) {
  feasibility::Request read = feasibility::parse_request(line);
  Request request;
  request.resources = std::move(read.resources);
  request.constraint = std::move(read.constraint);
  request.duration = read.duration;
  return request;
}

/// Makes a request for a node without contents one for the whole node.
void take_bare_nodes_whole(jobspec::ResourceGraph& resources) {
  for (jobspec::Vertex& vertex : resources) {
    if (vertex.type == "node" && vertex.with.empty()) vertex.exclusive = true;
    take_bare_nodes_whole(vertex.with);
  }
}

std::uint64_t count_slots(const jobspec::ResourceGraph& resources) {
  std::uint64_t slots = 0;
  for (const jobspec::Vertex& vertex : resources)
    slots = constraint::plus(
        slots, constraint::times(vertex.count.min(), vertex.is_slot() ? 1 : count_slots(vertex.with)));
  return slots;
}

}  // namespace

Request read_request(std::string_view line) {
  Request request = line.starts_with('{') ? read_jobspec(line) : read_shape(line);
  take_bare_nodes_whole(request.resources);
  request.demand = feasibility::demand_of(request.resources).demand;
  request.slots = std::max<std::uint64_t>(1, count_slots(request.resources));
  return request;
}

}  // namespace resourced::fifo
