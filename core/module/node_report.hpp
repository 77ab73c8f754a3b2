// The resources that a node agent reports for its node, from the R that it found there (RFC 20). The ranks of
// that R are not those of the inventory and are ignored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced {

struct NodeReport {
  /// The host that the agent speaks for.
  std::string hostname;
  /// The host that its R names.
  std::string found_host;
  IdSet cores;
  IdSet gpus;
  std::vector<std::string> properties;
  /// Whether the agent counted cores that it may not use itself; nothing where it does not say.
  std::optional<bool> norestrict = std::nullopt;
};

/// Throws Error EINVAL if the name is not a host name, or the R does not describe exactly one node.
[[nodiscard]] NodeReport read_node_report(const std::string& hostname, const ResourceSet& found);

}  // namespace resourced
