// Counting GPUs, see gpus.hpp.
#include "hw/gpus.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace resourced::hw {

std::uint32_t count_gpus(const std::vector<GpuSighting>& sightings) {
  struct Seen {
    std::set<std::uint64_t> places;
    std::size_t without_place = 0;
  };
  std::set<std::uint64_t> places;
  std::map<std::string, Seen> backends;
  for (const auto& sighting : sightings) {
    auto& seen = backends[sighting.backend];
    if (sighting.pci) {
      seen.places.insert(*sighting.pci);
      places.insert(*sighting.pci);
    } else {
      ++seen.without_place;
    }
  }
  std::size_t count = places.size();
  for (const auto& [name, seen] : backends) count = std::max(count, seen.places.size() + seen.without_place);
  return static_cast<std::uint32_t>(count);
}

}  // namespace resourced::hw
