#include "flux/module/node.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "agent/hw/probe.hpp"
#include "core/error.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/short_form.hpp"
#include "core/text/whole_number.hpp"

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

/// Returns the resources of `has` that are not in `lacks`, except types whose mode is `ignore` or `allowed`.
std::string difference(const ResourceGroup& has, const ResourceGroup& lacks,
                       const rset::VerifyOptions& options, VerifyMode allowed) {
  const auto counts = [&](VerifyMode mode) { return mode != VerifyMode::ignore && mode != allowed; };
  return rset::short_form(counts(options.core) ? has.cores - lacks.cores : IdSet(),
                          counts(options.gpu) ? has.gpus - lacks.gpus : IdSet());
}

ResourceSet node_of(const agent::hw::Topology& topology, std::uint32_t rank) {
  const ResourceSet node = agent::hw::node_resources(
      topology.hostname.empty() ? agent::hw::local_hostname() : topology.hostname, topology.hardware);
  const ResourceGroup& group = node.groups().front();
  return ResourceSet({{IdSet{rank}, group.cores, group.gpus}}, node.nodelist());
}

}  // namespace

Node probe_node(std::uint32_t rank, bool norestrict) {
  agent::hw::ProbeOptions options;
  options.norestrict = norestrict;
  if (const char* file = std::getenv("FLUX_HWLOC_XMLFILE")) {
    options.xml = file;
    const char* other = std::getenv("FLUX_HWLOC_XMLFILE_NOT_THISSYSTEM");
    options.is_this_system = other == nullptr || *other == '\0';
  }
  const agent::hw::Topology topology = agent::hw::probe_topology(options);
  return {topology.xml, node_of(topology, rank)};
}

ResourceSet read_topologies(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code failure;
  std::map<IdSet::Id, std::string> files;
  // A range-based for is not possible, because its increment throws.
  for (fs::directory_iterator entry(directory, failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    const fs::path& path = entry->path();
    const auto rank = text::whole_number<IdSet::Id>(path.stem().native());
    if (path.extension() == ".xml" && rank) files.emplace(*rank, path);
  }
  if (failure) throw Error(failure.value(), fmt::format("{}: {}", directory, failure.message()));
  if (files.empty())
    throw Error(EINVAL, fmt::format("{}: invalid directory: no XML input files found", directory));
  ResourceSet all;
  for (const auto& [rank, file] : files) {
    agent::hw::ProbeOptions options;
    options.xml = file;
    ResourceSet node;
    try {
      node = node_of(agent::hw::probe_topology(options), rank);
    } catch (const Error& error) {
      throw Error(EINVAL, fmt::format("error building R from hwloc XML: {}", error.what()));
    }
    all = all.empty() ? std::move(node) : append(all, node);
  }
  return all;
}

void forget_topology() {
  ::unsetenv("HWLOC_XMLFILE");
  ::unsetenv("HWLOC_SYNTHETIC");
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
