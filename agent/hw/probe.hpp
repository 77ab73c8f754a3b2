// The hardware of a node, as hwloc reports it: the cores that this process may use, and the GPUs; and as an R
// of one rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/rset/resource_set.hpp"

namespace resourced::agent::hw {

/// A GPU as one library sees it.
struct GpuSighting {
  /// The library that reports it: `cuda`, `nvml`, `opencl0d`, ...
  std::string backend;
  /// The same number for the same PCI device; nothing if the library does not report the device.
  std::optional<std::uint64_t> pci;
};

/// A PCI device is as many GPUs as the library reports that reports the most there: an accelerator may be
/// divided (modes TPX and CPX of AMD's), and several libraries may report the same. A sighting without a PCI
/// device may be of a GPU that another library reports with one, but not of another GPU of the same library.
/// So the node has as many GPUs as its PCI devices, or as the library with the most GPUs reports, whichever
/// is more.
[[nodiscard]] std::uint32_t count_gpus(const std::vector<GpuSighting>& sightings);

/// Another topology than that of the machine. Nothing: $HWLOC_XMLFILE, $HWLOC_SYNTHETIC, or the machine.
struct ProbeOptions {
  /// A file that `lstopo FILE.xml` wrote.
  std::optional<std::string> xml;
  /// As hwloc(7) describes it, `package:2 core:8 pu:2`.
  std::optional<std::string> synthetic;
  /// Counts all cores, also those that this process may not use.
  bool norestrict = false;
  /// The topology in `xml` is the machine's.
  bool is_this_system = false;
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

/// The name that the system gives this host. Throws Error.
[[nodiscard]] std::string local_hostname();

/// One target, rank 0, on this host: the daemon knows which rank the host is. Throws Error EINVAL for a name
/// that no host can have (RFC 29), and for hardware without a core.
[[nodiscard]] rset::ResourceSet node_resources(const std::string& hostname, const Hardware& hardware);

/// The topology of a node, for programs that read hwloc's XML.
struct Topology {
  /// As hwloc_topology_export_xmlbuffer(3) writes it.
  std::string xml;
  /// The host of the topology; empty if the topology does not name it.
  std::string hostname;
  Hardware hardware;
};

/// As probe().
[[nodiscard]] Topology probe_topology(const ProbeOptions& options);

}  // namespace resourced::agent::hw
