#include <nlohmann/json.hpp>

#include "core/constraint/constraint.hpp"
#include "core/rset/resource_set.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_discarded()) return;
    const auto constraint = resourced::constraint::Constraint::from_json(document);
    static const auto inventory = resourced::rset::ResourceSet::parse(
        R"({"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0"}}],"nodelist":["n[0-3]"]}})");
    FUZZ_CHECK(inventory.ranks().includes(constraint.match(inventory)));
  });
}
