// The number of GPUs when several libraries report them.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "agent/hw/probe.hpp"

using namespace resourced;
using agent::hw::count_gpus;
using agent::hw::GpuSighting;

namespace {

/// Parses sightings: `cuda@1` is a GPU that cuda reports at PCI address 1, `cuda` one at an unknown address.
std::vector<GpuSighting> sightings(const std::vector<std::string>& texts) {
  std::vector<GpuSighting> seen;
  for (const auto& text : texts) {
    const auto at = text.find('@');
    GpuSighting sighting{text.substr(0, at), std::nullopt};
    if (at != std::string::npos) sighting.pci = std::stoul(text.substr(at + 1));
    seen.push_back(sighting);
  }
  return seen;
}

}  // namespace

TEST_SUITE("gpus") {
  TEST_CASE("every GPU counts once") {
    struct Case {
      const char* name;
      std::vector<std::string> seen;
      std::uint32_t count;
    };
    const std::vector<Case> cases = {
        {"none", {}, 0},
        {"one library, two places", {"cuda@1", "cuda@2"}, 2},
        {"three libraries, the same places", {"cuda@1", "nvml@1", "opencl@1", "cuda@2", "nvml@2"}, 2},
        {"libraries of different vendors", {"cuda@1", "rsmi@2", "opencl@1", "opencl@2"}, 2},
        {"an accelerator divided in three", {"rsmi@1", "rsmi@1", "rsmi@1"}, 3},
        {"the same, which another library sees as one", {"rsmi@1", "opencl@1", "rsmi@1", "rsmi@1"}, 3},
        {"one divided, one whole", {"rsmi@1", "rsmi@1", "rsmi@2"}, 3},
        {"divided, and without a place for another library", {"rsmi@1", "rsmi@1", "opencl"}, 2},
        {"two platforms of OpenCL", {"opencl0d@1", "opencl1d@1"}, 1},
        {"no place at all", {"opencl", "opencl", "opencl"}, 3},
        {"the same without a place", {"rsmi@1", "rsmi@2", "opencl", "opencl"}, 2},
        {"two libraries without places see the same", {"cuda", "cuda", "opencl", "opencl"}, 2},
        {"one more without a place", {"rsmi@1", "opencl", "opencl"}, 2},
        {"places that another library does not know of", {"opencl@1", "opencl", "rsmi@2"}, 2},
    };
    for (const auto& [name, seen, count] : cases) {
      CAPTURE(name);
      CHECK(count_gpus(sightings(seen)) == count);
      CHECK(count_gpus(sightings({seen.rbegin(), seen.rend()})) == count);
    }
  }
}
