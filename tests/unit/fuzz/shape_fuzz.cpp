#include "core/jobspec/resource_graph.hpp"
#include "core/jobspec/shape.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto graph = resourced::jobspec::parse_shape(text);
    FUZZ_CHECK(resourced::jobspec::parse_shape(resourced::jobspec::print_shape(graph)) == graph);
  });
}
