#include "core/nodes/node_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/node_name.hpp"

namespace resourced::nodes {

using rset::ResourceSet;
using text::IdSet;

NodeReport read_node_report(const std::string& hostname, const ResourceSet& found) {
  text::Hostlist named;
  named.append(hostname);
  text::check_node_names(named);
  text::check_node_names(found.nodelist());
  if (text::is_localhost(hostname)) {
    throw Error(EINVAL, fmt::format("{} is the name of no node: name the host, or give its agent --hostname",
                                    hostname));
  }
  const std::size_t nodes = found.ranks().count();
  if (nodes != 1) {
    throw Error(EINVAL, fmt::format("the R of the agent on {} describes {} nodes, not one", hostname, nodes));
  }
  const rset::ResourceGroup& node = found.groups().front();
  NodeReport report{hostname, found.nodelist().at(0), node.cores, node.gpus, {}};
  for (const auto& [name, ranks] : found.properties()) report.properties.push_back(name);
  return report;
}

namespace {

ResourceSet one_node(IdSet::Id rank, const IdSet& cores, const IdSet& gpus, const std::string& host) {
  text::Hostlist hosts;
  hosts.append(host);
  return ResourceSet({{IdSet{rank}, cores, gpus}}, std::move(hosts));
}

}  // namespace

std::string verify_node(const ResourceSet& inventory, IdSet::Id rank, const NodeReport& report,
                        const rset::VerifyOptions& options) {
  const std::string host = inventory.host(rank);
  const auto& groups = inventory.groups();
  const auto group = std::ranges::find_if(
      groups, [&](const rset::ResourceGroup& some) { return some.ranks.contains(rank); });
  return verify(one_node(rank, group->cores, group->gpus, host),
                one_node(rank, report.cores, report.gpus,
                         report.hostname != host ? report.hostname : report.found_host),
                options);
}

}  // namespace resourced::nodes
