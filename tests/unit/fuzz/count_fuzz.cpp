#include "core/text/count.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto count = resourced::text::Count::parse(text);
    FUZZ_CHECK(resourced::text::Count::parse(count.encode()).encode() == count.encode());
  });
}
