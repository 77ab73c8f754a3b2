#include "core/text/idset.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto ids = resourced::text::IdSet::parse(text);
    FUZZ_CHECK(resourced::text::IdSet::parse(ids.encode()) == ids);
  });
}
