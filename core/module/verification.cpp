#include "core/module/verification.hpp"

#include <algorithm>

namespace resourced {
namespace {

ResourceSet one_node(IdSet::Id rank, const IdSet& cores, const IdSet& gpus, const std::string& host) {
  Hostlist hosts;
  hosts.append(host);
  return ResourceSet({{IdSet{rank}, cores, gpus}}, std::move(hosts));
}

}  // namespace

std::string verify_node(const ResourceSet& inventory, IdSet::Id rank, const NodeReport& report,
                        const VerifyOptions& options) {
  const std::string host = inventory.host(rank);
  const auto& groups = inventory.groups();
  const auto group =
      std::ranges::find_if(groups, [&](const ResourceGroup& some) { return some.ranks.contains(rank); });
  return verify(one_node(rank, group->cores, group->gpus, host),
                one_node(rank, report.cores, report.gpus,
                         report.hostname != host ? report.hostname : report.found_host),
                options);
}

}  // namespace resourced
