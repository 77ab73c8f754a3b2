// Queries hwloc, see probe.hpp.
#include "agent/hw/probe.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/text/quote.hpp"

namespace resourced::agent::hw {

using text::IdSet;

std::uint32_t count_gpus(const std::vector<GpuSighting>& sightings) {
  using Counts = std::map<std::string, std::size_t>;
  std::map<std::uint64_t, Counts> places;
  Counts backends;
  for (const auto& sighting : sightings) {
    ++backends[sighting.backend];
    if (sighting.pci) ++places[*sighting.pci][sighting.backend];
  }
  const auto most = [](const Counts& counts) {
    std::size_t found = 0;
    for (const auto& [backend, count] : counts) found = std::max(found, count);
    return found;
  };
  std::size_t placed = 0;
  for (const auto& [place, counts] : places) placed += most(counts);
  return static_cast<std::uint32_t>(std::max(placed, most(backends)));
}

namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using LoadedTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

/// The source of the topology, and its name in an error. Both are empty for the machine.
struct Source {
  std::optional<std::string> xml;
  std::optional<std::string> synthetic;

  [[nodiscard]] std::string name() const {
    if (xml) return fmt::format("the topology file {}", *xml);
    if (synthetic) return fmt::format("the synthetic topology {}", text::quoted(*synthetic));
    return "this machine";
  }
};

/// Chooses the source. If an environment variable is set, hwloc_topology_load() ignores the source that was
/// set by function, and falls back to the machine if the variable's value is invalid.
Source choose_source(const ProbeOptions& options) {
  if (options.xml || options.synthetic) {
    for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC"}) {
      // Other threads may read the environment, so change it only if the variable is set.
      if (std::getenv(name) != nullptr) unsetenv(name);
    }
    return {options.xml, options.synthetic};
  }
  if (auto xml = environment("HWLOC_XMLFILE")) return {std::move(xml), std::nullopt};
  return {std::nullopt, environment("HWLOC_SYNTHETIC")};
}

[[noreturn]] void fail(const Source& source, int errnum) {
  // The errno for a directory is EISDIR if hwloc's XML plugin is installed, else EINVAL.
  const bool is_invalid = errnum == 0 || errnum == EINVAL || errnum == EISDIR;
  throw Error(is_invalid ? EINVAL : errnum,
              fmt::format("{}: {}", source.name(),
                          is_invalid ? "not a topology that hwloc understands" : std::strerror(errnum)));
}

/// Leaves out the processors that this process is not bound to. HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING
/// would need hwloc 2.5.
void restrict_to_binding(hwloc_topology_t topology) {
  const std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, decltype(&hwloc_bitmap_free)> bound(
      hwloc_bitmap_alloc(), hwloc_bitmap_free);
  if (hwloc_get_cpubind(topology, bound.get(), 0) == 0) hwloc_topology_restrict(topology, bound.get(), 0);
}

LoadedTopology load(const Source& source, const ProbeOptions& options) {
  // Silence the warnings of hwloc about odd hardware; failures are reported below.
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
  hwloc_topology_t made = nullptr;
  errno = 0;
  if (hwloc_topology_init(&made) != 0) fail(source, errno);
  LoadedTopology topology(made);
  if (source.xml && hwloc_topology_set_xml(made, source.xml->c_str()) != 0) fail(source, errno);
  if (source.synthetic && hwloc_topology_set_synthetic(made, source.synthetic->c_str()) != 0) {
    fail(source, errno);
  }
  // Keep the probe from running on every processor in turn, where jobs of others run.
  hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  unsigned long flags = 0;
  const bool machine = options.is_this_system || (!source.xml && !source.synthetic);
  const auto this_system = environment("HWLOC_THISSYSTEM");
  const bool is_this_system = this_system ? *this_system != "0" : machine;
  if (is_this_system) flags |= HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM;
  if (options.norestrict) flags |= HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
  hwloc_topology_set_flags(made, flags);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  errno = 0;
  if (hwloc_topology_load(made) != 0) fail(source, errno);
  if (is_this_system && !options.norestrict) restrict_to_binding(made);
  return topology;
}

std::uint32_t count_cores(hwloc_topology_t topology) {
  // Some virtual machines and synthetic topologies report no cores.
  const int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  const int threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
  return static_cast<std::uint32_t>(std::max(cores > 0 ? cores : threads, 0));
}

/// Returns the library that reports a device, if it is one that reports GPUs for computing: `cuda` for
/// `cuda0`, `rsmi` for `rsmi0`, and likewise `nvml`, `ze`, `ve`. For `opencl0d1` it is `opencl0d`: several
/// platforms of OpenCL may report the same device. Names of the kernel and the X server (`card0`,
/// `renderD128`, `:0.0`) do not count: the graphics of a board's management controller have them, too.
std::optional<std::string> gpu_backend(hwloc_obj_t device) {
  const std::string_view name = device->name == nullptr ? "" : device->name;
  std::string backend(name.substr(0, name.find_last_not_of("0123456789") + 1));
  switch (device->attr->osdev.type) {
    case HWLOC_OBJ_OSDEV_COPROC: {
      // OpenCL reports processors as devices, too.
      const char* type = hwloc_obj_get_info_by_name(device, "OpenCLDeviceType");
      if (type != nullptr && std::string_view(type) == "CPU") return std::nullopt;
      return backend;
    }
    case HWLOC_OBJ_OSDEV_GPU: {
      static constexpr std::array<std::string_view, 2> known = {"nvml", "rsmi"};
      if (std::find(known.begin(), known.end(), backend) == known.end()) return std::nullopt;
      return backend;
    }
    default:
      return std::nullopt;
  }
}

std::vector<GpuSighting> see_gpus(hwloc_topology_t topology) {
  std::vector<GpuSighting> sightings;
  for (auto* device = hwloc_get_next_osdev(topology, nullptr); device != nullptr;
       device = hwloc_get_next_osdev(topology, device)) {
    // Skip a part of another device, such as a tile.
    if (device->parent->type == HWLOC_OBJ_OS_DEVICE) continue;
    auto backend = gpu_backend(device);
    if (!backend) continue;
    GpuSighting sighting{std::move(*backend), std::nullopt};
    if (device->parent->type == HWLOC_OBJ_PCI_DEVICE) sighting.pci = device->parent->gp_index;
    sightings.push_back(std::move(sighting));
  }
  return sightings;
}

Hardware hardware_of(hwloc_topology_t topology) {
  return {count_cores(topology), count_gpus(see_gpus(topology))};
}

}  // namespace

Hardware probe(const ProbeOptions& options) {
  return hardware_of(load(choose_source(options), options).get());
}

Topology probe_topology(const ProbeOptions& options) {
  const Source source = choose_source(options);
  const auto topology = load(source, options);
  char* text = nullptr;
  int size = 0;
  if (hwloc_topology_export_xmlbuffer(topology.get(), &text, &size, 0) != 0) fail(source, errno);
  Topology result{text, {}, hardware_of(topology.get())};
  hwloc_free_xmlbuffer(topology.get(), text);
  const char* hostname = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology.get()), "HostName");
  if (hostname != nullptr) result.hostname = hostname;
  return result;
}

namespace {

IdSet numbered(std::uint32_t count) { return count == 0 ? IdSet{} : IdSet::range(0, count - 1); }

}  // namespace

std::string local_hostname() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) {
    const int errnum = errno;
    throw Error(errnum, fmt::format("gethostname: {}", std::strerror(errnum)));
  }
  return name.data();
}

rset::ResourceSet node_resources(const std::string& hostname, const Hardware& hardware) {
  if (hardware.cores == 0) throw Error(EINVAL, "there is no core that this process may use");
  text::Hostlist hosts;
  hosts.append(hostname);
  return rset::ResourceSet({{IdSet{0}, numbered(hardware.cores), numbered(hardware.gpus)}}, hosts);
}

}  // namespace resourced::agent::hw
