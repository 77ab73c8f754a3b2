#include "core/module/node_report.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced {

NodeReport read_node_report(const std::string& hostname, const ResourceSet& found) {
  Hostlist().append(hostname);  // throws for what is not a host name
  const std::size_t nodes = found.ranks().count();
  if (nodes != 1) {
    throw Error(EINVAL, fmt::format("the R of the agent on {} describes {} nodes, not one", hostname, nodes));
  }
  const ResourceGroup& node = found.groups().front();
  NodeReport report{hostname, found.nodelist().at(0), node.cores, node.gpus, {}};
  for (const auto& [name, ranks] : found.properties()) report.properties.push_back(name);
  return report;
}

}  // namespace resourced
