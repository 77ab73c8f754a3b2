#include "core/text/hostlist.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto hosts = resourced::text::Hostlist::parse(text);
    FUZZ_CHECK(resourced::text::Hostlist::parse(hosts.encode()) == hosts);
  });
}
