// Probes the node of a rank, and compares its resources with R.
#pragma once

#include <cstdint>
#include <string>

#include "core/rset/resource_set.hpp"
#include "core/rset/verify.hpp"

namespace resourced::flux::module {

struct Node {
  /// The topology as hwloc's XML, without a terminating NUL.
  std::string xml;
  /// The R of this rank alone.
  rset::ResourceSet resources;
};

/// Probes the node with hwloc. With norestrict, cores that this process may not use count too. The variables
/// FLUX_HWLOC_XMLFILE and FLUX_HWLOC_XMLFILE_NOT_THISSYSTEM have the effect that flux-environment(7)
/// describes. Throws Error EINVAL.
[[nodiscard]] Node probe_node(std::uint32_t rank, bool norestrict);

/// Returns the R of the nodes whose topologies are in a directory as RANK.xml. Throws Error with Flux's
/// texts: the errno of the system, or EINVAL without any such file or for one that cannot be read. May run on
/// another thread after forget_topology() was called.
[[nodiscard]] rset::ResourceSet read_topologies(const std::string& directory);

/// Removes the variables of hwloc(7) that select another topology than the machine's.
void forget_topology();

/// Returns the reason to drain a rank whose resources differ from R: `rank 1 (vm) missing resources:
/// core[2-7]`; empty for none.
[[nodiscard]] std::string mismatch(std::uint32_t rank, const rset::ResourceSet& expected,
                                   const rset::ResourceSet& found, const rset::VerifyOptions& options);

}  // namespace resourced::flux::module
