// The node of a rank: what hwloc sees of it, and whether that is what R says.
#pragma once

#include <cstdint>
#include <string>

#include "core/rset/resource_set.hpp"
#include "core/rset/verify.hpp"

namespace resourced::flux::module {

struct Node {
  /// The topology as XML of hwloc, without a terminating NUL.
  std::string xml;
  /// R of this rank alone.
  rset::ResourceSet resources;
};

/// Asks hwloc. With norestrict, cores count that this process may not use. Error EINVAL.
[[nodiscard]] Node probe_node(std::uint32_t rank, bool norestrict);

/// The reason to drain a rank whose resources are not what R says: `rank 1 (vm) missing resources:
/// core[2-7]`; empty for none.
[[nodiscard]] std::string mismatch(std::uint32_t rank, const rset::ResourceSet& expected,
                                   const rset::ResourceSet& found, const rset::VerifyOptions& options);

}  // namespace resourced::flux::module
