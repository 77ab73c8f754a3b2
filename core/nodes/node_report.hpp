// The resources that a node agent reports for its node, from the R that it found there (RFC 20). The ranks of
// that R are not those of the inventory and are ignored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rset/resource_set.hpp"
#include "core/rset/verify.hpp"
#include "core/text/idset.hpp"

namespace resourced::nodes {

struct NodeReport {
  /// The host of the agent.
  std::string hostname;
  /// The host in its R.
  std::string found_host;
  text::IdSet cores;
  text::IdSet gpus;
  std::vector<std::string> properties;
  /// Whether the agent counted cores that it may not use itself; unset if it does not report it.
  std::optional<bool> norestrict = std::nullopt;
  /// Whether the agent runs checks of the node's health, and reports their results.
  bool health = false;
  /// Id of the boot of the node's kernel, which changes at each reboot. Empty if the agent does not report
  /// it.
  std::string boot_id = {};
};

/// Reads a report. Throws Error EINVAL if a name cannot be that of a node (core/text/node_name.hpp), or the R
/// does not describe exactly one node.
[[nodiscard]] NodeReport read_node_report(const std::string& hostname, const rset::ResourceSet& found);

/// Returns the reason to drain this rank, such as `missing resources: gpu[2-3]`, or "" for none. A hostname
/// mismatch is one in the name that the agent gave, or in the R that it found. Throws Error EINVAL for a rank
/// that is not in the inventory.
[[nodiscard]] std::string verify_node(const rset::ResourceSet& inventory, text::IdSet::Id rank,
                                      const NodeReport& report, const rset::VerifyOptions& options);

}  // namespace resourced::nodes
