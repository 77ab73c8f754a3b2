// Makes a resource set from its parts, as `resourcectl R encode` names them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// What is not given follows from what is: ranks count from 0 over the hosts, there is core 0, and every rank
/// is on the local host.
struct Composition {
  std::optional<text::IdSet> ranks;
  std::optional<text::IdSet> cores;
  text::IdSet gpus;
  std::optional<text::Hostlist> hosts;
  /// `NAME[:RANKS]`
  std::vector<std::string> properties;
};

/// Every rank gets the same cores and gpus. Throws Error EINVAL when hosts and ranks differ in number, there
/// are neither cores nor gpus, or a property is not valid.
[[nodiscard]] ResourceSet compose(const Composition& parts, const std::string& local_host);

}  // namespace resourced::rset
