#include <nlohmann/json.hpp>

#include "core/document/document.hpp"
#include "core/jobspec/jobspec.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_text(data, size, [](std::string_view text) {
    const auto document = resourced::document::read_document(text);
    try {
      resourced::jobspec::check_jobspec_v1(document, resourced::jobspec::V1Edition::strict);
      resourced::jobspec::check_jobspec_v1(document, resourced::jobspec::V1Edition::lenient);
    } catch (const resourced::Error&) {
    }
    resourced::jobspec::check_canonical_jobspec(document);
  });
}
