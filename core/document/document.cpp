#include "core/document/document.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/json_path.hpp"
#include "core/json/reader.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::document {

using json_text::JsonFault;

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
  if (const auto offset = json_text::find_invalid_utf8(text)) {
    throw Error(EINVAL, fmt::format("the document is not UTF-8 at byte {}", *offset + 1));
  }
  if (could_be_json(text)) {
    // Text that is not JSON may be YAML in flow style; if it is neither, the YAML reader has the better
    // error.
    if (auto value = read_json_document(text)) return *std::move(value);
  }
  return read_yaml_document(text);
}

namespace {

std::string place_text(const JsonFault& fault) {
  std::string text;
  for (auto step = fault.place.rbegin(); step != fault.place.rend(); ++step) {
    if (const auto* key = std::get_if<std::string>(&*step)) {
      json_text::append_path_key(text, *key);
    } else {
      text += fmt::format("[{}]", std::get<std::size_t>(*step));
    }
  }
  return text;
}

[[noreturn]] void refuse(const JsonFault& fault) {
  if (fault.kind == JsonFault::Kind::depth)
    throw Error(EINVAL, fmt::format("the document is nested more than {} levels deep", max_document_depth));
  if (fault.kind == JsonFault::Kind::repeated_key)
    throw Error(EINVAL, fmt::format("{}: the key is given twice", place_text(fault)));
  throw Error(EINVAL, fmt::format("{}: {} is out of range", place_text(fault), text::quoted(fault.number)));
}

}  // namespace

std::optional<nlohmann::json> read_json_document(std::string_view text) {
  auto read = read_json(text, max_document_depth, json_text::JsonManners::unique_keys);
  if (auto* value = std::get_if<nlohmann::json>(&read)) return std::move(*value);
  const auto& fault = std::get<JsonFault>(read);
  if (fault.kind != JsonFault::Kind::syntax && fault.kind != JsonFault::Kind::utf8) refuse(fault);
  return std::nullopt;
}

}  // namespace resourced::document
