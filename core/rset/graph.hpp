// The resource graph that an R may carry as `scheduling.graph` (JSON Graph Format; RFC 40 and the earlier
// edition of RFC 20): the check of the graph, and the resources in it, for a document without an execution
// section.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/rset/resource_set.hpp"

namespace resourced::rset {

struct GraphResources {
  std::vector<ResourceGroup> groups;
  /// Hosts in the order of the sorted ranks.
  text::Hostlist hosts;
  ResourceSet::Properties properties;
};

/// Checks a graph: unique ids, the required metadata, edges between known ids. Edge metadata may be flat
/// (`{"subsystem": S, "relationship": R}`) or nested (`{"name": {S: R}}`). Throws Error EINVAL that names the
/// path (`scheduling.graph.nodes[3].metadata.uuid: is missing`).
void check_graph(const nlohmann::json& graph, std::string_view path = "scheduling.graph");

/// Checks the graph and takes hosts and ranks from its `node` vertices, and their cores and gpus from the
/// `core` and `gpu` vertices that they contain, directly or through others. If no node has a rank, they are
/// numbered in their order. A vertex of `size` n stands for n cores or gpus, whose ids begin with its own.
/// Properties are taken from `node` vertices.
[[nodiscard]] GraphResources resources_of_graph(const nlohmann::json& graph,
                                                std::string_view path = "scheduling.graph");

}  // namespace resourced::rset
