// How many GPUs a node has, when several libraries (CUDA, NVML, OpenCL, ROCm SMI, ...) each name those that
// they see. Where a device sits on the PCI bus tells which of the names mean the same one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace resourced::hw {

/// A GPU as one library sees it.
struct GpuSighting {
  /// The backend of hwloc that reports it: `cuda`, `nvml`, ...
  std::string backend;
  /// The same number for the same PCI device; nothing where the library does not say.
  std::optional<std::uint64_t> pci;
};

/// Every place on the PCI bus is one GPU, however many see it. A sighting without a place may be of a GPU
/// that another library placed, but not of one that its own library sees besides: so the node has as many
/// GPUs as there are places, or as the library that sees the most counts, whichever is more.
[[nodiscard]] std::uint32_t count_gpus(const std::vector<GpuSighting>& sightings);

}  // namespace resourced::hw
