#include <nlohmann/json.hpp>

#include "core/document/document.hpp"
#include "core/jobspec/jobspec.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto document = resourced::read_document(text);
    try {
      resourced::check_jobspec_v1(document, resourced::V1Edition::strict);
      resourced::check_jobspec_v1(document, resourced::V1Edition::lenient);
    } catch (const resourced::Error&) {
    }
    resourced::check_canonical_jobspec(document);
  });
}
