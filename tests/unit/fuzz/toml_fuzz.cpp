#include "config/document.hpp"
#include "config/toml_text.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size,
                   [](std::string_view text) { (void)resourced::config::parse_toml(text, "fuzz.toml", 0); });
}
