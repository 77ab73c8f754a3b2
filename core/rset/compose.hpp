// Makes a resource set from its parts, as `resourcectl R encode` names them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// Parts of a resource set. Omitted parts have defaults: ranks from 0 for the hosts, core 0, and the local
/// host for every rank.
struct Composition {
  std::optional<text::IdSet> ranks;
  std::optional<text::IdSet> cores;
  text::IdSet gpus;
  std::optional<text::Hostlist> hosts;
  /// Properties, each as `NAME[:RANKS]`.
  std::vector<std::string> properties;
};

/// Makes a resource set whose ranks all have the same cores and gpus. Throws Error EINVAL when hosts and
/// ranks differ in number, there are neither cores nor gpus, or a property is not valid.
[[nodiscard]] ResourceSet compose(const Composition& parts, const std::string& local_host);

}  // namespace resourced::rset
