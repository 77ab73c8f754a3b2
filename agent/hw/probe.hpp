// Probes the hardware of a node with hwloc: the cores that this process may use, and the GPUs; and makes an R
// of one rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/rset/resource_set.hpp"

namespace resourced::agent::hw {

/// A GPU in the report of one library.
struct GpuSighting {
  /// The library that reports it: `cuda`, `nvml`, `opencl0d`, ...
  std::string backend;
  /// Number of the PCI device, the same for the same device; nothing if the library does not report it.
  std::optional<std::uint64_t> pci;
};

/// Counts GPUs. The GPUs of a PCI device are counted by the library that reports the most: an accelerator may
/// be divided (modes TPX and CPX of AMD's), and several libraries may report the same device. A sighting
/// without a PCI device may be of a GPU that another library reports with one, but not of another GPU of the
/// same library. So the result is the larger of the sum over all PCI devices, and the largest number of GPUs
/// that one library reports.
[[nodiscard]] std::uint32_t count_gpus(const std::vector<GpuSighting>& sightings);

/// Selects another topology than that of the machine. If neither is set: $HWLOC_XMLFILE, $HWLOC_SYNTHETIC, or
/// the machine.
struct ProbeOptions {
  /// The path of a file written by `lstopo FILE.xml`.
  std::optional<std::string> xml;
  /// A synthetic topology as in hwloc(7), `package:2 core:8 pu:2`.
  std::optional<std::string> synthetic;
  /// Whether to count all cores, also those that this process may not use.
  bool norestrict = false;
  /// Whether the topology in `xml` is that of this machine.
  bool is_this_system = false;
};

/// Numbers of cores and GPUs, whose ids begin with 0.
struct Hardware {
  std::uint32_t cores = 0;
  std::uint32_t gpus = 0;
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

/// Probes the hardware. On the machine itself (and with $HWLOC_THISSYSTEM=1 for any topology) those cores
/// count that the cpuset and the affinity of this process allow; in a file, those that the file calls
/// allowed. A core counts if one of its hardware threads is allowed. With norestrict all cores count. Every
/// variable of hwloc(7) has its effect, except that the options replace $HWLOC_XMLFILE and $HWLOC_SYNTHETIC,
/// which are then removed from the environment, and that an unusable source is an error, where hwloc itself
/// would silently use the machine instead. Must be called before other threads are started. Throws Error that
/// names the file or text.
[[nodiscard]] Hardware probe(const ProbeOptions& options);

/// Returns the name that the system gives this host. Throws Error.
[[nodiscard]] std::string local_hostname();

/// Returns an R of one target, rank 0, on this host: the daemon knows the rank of the host. Throws Error
/// EINVAL for an invalid host name (RFC 29), and for hardware without a core.
[[nodiscard]] rset::ResourceSet node_resources(const std::string& hostname, const Hardware& hardware);

/// The topology of a node, for programs that read hwloc's XML.
struct Topology {
  /// The XML of hwloc_topology_export_xmlbuffer(3).
  std::string xml;
  /// The host of the topology; empty if the topology does not name it.
  std::string hostname;
  Hardware hardware;
};

/// Probes as probe() does, and returns the topology.
[[nodiscard]] Topology probe_topology(const ProbeOptions& options);

}  // namespace resourced::agent::hw
