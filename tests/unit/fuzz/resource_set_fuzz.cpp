#include "core/rset/resource_set.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto set = resourced::rset::ResourceSet::parse(text);
    const std::string written = set.encode();
    FUZZ_CHECK(resourced::rset::ResourceSet::parse(written).encode() == written);
  });
}
