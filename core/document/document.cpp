#include "core/document/document.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/document/document_readers.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"

namespace resourced {

namespace {

bool could_be_json(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && (text[start] == '{' || text[start] == '[');
}

}  // namespace

nlohmann::json read_document(std::string_view text) {
  if (text.size() > max_document_bytes) {
    throw Error(EFBIG,
                fmt::format("the document has {} bytes, more than {}", text.size(), max_document_bytes));
  }
  if (const auto offset = find_invalid_utf8(text)) {
    throw Error(EINVAL, fmt::format("the document is not UTF-8 at byte {}", *offset + 1));
  }
  if (could_be_json(text)) {
    // YAML's flow style looks like JSON too, and has the better error if it is neither.
    if (auto value = read_json_document(text)) return *std::move(value);
  }
  return read_yaml_document(text);
}

}  // namespace resourced
