#include "flux/module/node.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/rset/short_form.hpp"
#include "hw/probe.hpp"

namespace resourced::flux::module {

using rset::ResourceGroup;
using rset::ResourceSet;
using rset::VerifyMode;
using text::IdSet;

namespace {

const ResourceGroup& group_of(const ResourceSet& set, std::uint32_t rank) {
  return *std::ranges::find_if(set.groups(),
                               [&](const ResourceGroup& group) { return group.ranks.contains(rank); });
}

/// The resources of `has` that are not in `lacks`, except types whose mode is `ignore` or `allowed`.
std::string difference(const ResourceGroup& has, const ResourceGroup& lacks,
                       const rset::VerifyOptions& options, VerifyMode allowed) {
  const auto counts = [&](VerifyMode mode) { return mode != VerifyMode::ignore && mode != allowed; };
  return rset::short_form(counts(options.core) ? has.cores - lacks.cores : IdSet(),
                          counts(options.gpu) ? has.gpus - lacks.gpus : IdSet());
}

}  // namespace

Node probe_node(std::uint32_t rank, bool norestrict) {
  hw::ProbeOptions options;
  options.norestrict = norestrict;
  const hw::Topology topology = hw::probe_topology(options);
  const ResourceSet node = hw::node_resources(
      topology.hostname.empty() ? hw::local_hostname() : topology.hostname, topology.hardware);
  const ResourceGroup& group = node.groups().front();
  return {topology.xml, ResourceSet({{IdSet{rank}, group.cores, group.gpus}}, node.nodelist())};
}

std::string mismatch(std::uint32_t rank, const ResourceSet& expected, const ResourceSet& found,
                     const rset::VerifyOptions& options) {
  if (!expected.ranks().contains(rank)) return fmt::format("rank {} not found in expected ranks", rank);
  const std::string host = found.host(rank);
  if (options.hostname == VerifyMode::strict && expected.host(rank) != host) {
    return fmt::format("rank {} got hostname '{}', expected '{}'", rank, host, expected.host(rank));
  }
  const ResourceGroup& wanted = group_of(expected, rank);
  const ResourceGroup& seen = group_of(found, rank);
  if (const std::string missing = difference(wanted, seen, options, VerifyMode::allow_missing);
      !missing.empty()) {
    return fmt::format("rank {} ({}) missing resources: {}", rank, host, missing);
  }
  if (const std::string extra = difference(seen, wanted, options, VerifyMode::allow_extra); !extra.empty()) {
    return fmt::format("rank {} ({}) has extra resources: {}", rank, host, extra);
  }
  return {};
}

}  // namespace resourced::flux::module
