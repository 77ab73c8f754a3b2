#include <nlohmann/json.hpp>

#include "core/constraint/query.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    (void)resourced::constraint::query_to_json(text);
    (void)resourced::constraint::parse_query(text);
  });
}
