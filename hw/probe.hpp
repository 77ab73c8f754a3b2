// The hardware of a node, as hwloc reports it: the cores that this process may use, and the GPUs. Which rank
// and host that is stands in node.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace resourced::hw {

/// Another topology than that of the machine. Nothing: $HWLOC_XMLFILE, $HWLOC_SYNTHETIC, or the machine.
struct ProbeOptions {
  /// A file that `lstopo FILE.xml` wrote.
  std::optional<std::string> xml;
  /// As hwloc(7) describes it, `package:2 core:8 pu:2`.
  std::optional<std::string> synthetic;
  /// All cores count, those too that this process may not use.
  bool norestrict = false;
};

/// Cores and GPUs are numbered from 0 on.
struct Hardware {
  std::uint32_t cores = 0;
  std::uint32_t gpus = 0;
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

/// On the machine itself (and with $HWLOC_THISSYSTEM=1 for any topology) those cores count that the cpuset
/// and the affinity of this process allow; in a file, those that it calls allowed. A core of which one
/// hardware thread is allowed is a core. With norestrict all count. Every variable of hwloc(7) has its
/// effect, except that the options take the place of $HWLOC_XMLFILE and $HWLOC_SYNTHETIC, which are then
/// removed from the environment, and that what cannot be used is an error where hwloc itself would quietly
/// look at the machine instead. To be called before other threads are started. Throws Error that names the
/// file or text.
[[nodiscard]] Hardware probe(const ProbeOptions& options);

}  // namespace resourced::hw
