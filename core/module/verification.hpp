// Whether a node is what the inventory says of it (`[resource.verify]`). What does not fit is a reason to
// drain the node (monitor_drain); how resources are compared is told in core/rset/verify.hpp.
#pragma once

#include <string>

#include "core/module/node_report.hpp"
#include "core/rset/resource_set.hpp"
#include "core/rset/verify.hpp"
#include "core/text/idset.hpp"

namespace resourced {

/// The reason to drain this rank, such as `missing resources: gpu[2-3]`, or "" for none. The node is on
/// another host than the inventory has it if its agent says so, or the R that was found there.
/// Throws Error EINVAL for a rank that is not in the inventory.
[[nodiscard]] std::string verify_node(const ResourceSet& inventory, IdSet::Id rank, const NodeReport& report,
                                      const VerifyOptions& options);

}  // namespace resourced
