#include "core/json/json_path.hpp"

#include <iterator>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"

namespace resourced {

void append_path_key(std::string& text, std::string_view key) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (!text.empty()) text += '.';
  const bool word = !key.empty() && key.size() <= max_quoted && key.find_first_not_of(plain) == key.npos;
  text += word ? std::string(key) : resourced::quoted(key);
}

std::string JsonPath::text() const {
  std::string out;
  append_to(out);
  return out;
}

void JsonPath::append_to(std::string& out) const {
  if (parent_ != nullptr) parent_->append_to(out);
  if (key_.data() != nullptr) {
    append_path_key(out, key_);
  } else if (parent_ != nullptr) {
    fmt::format_to(std::back_inserter(out), "[{}]", index_);
  }
}

void JsonPath::fail(std::string_view reason) const {
  const std::string where = text();
  throw Error(EINVAL, where.empty() ? std::string(reason) : fmt::format("{}: {}", where, reason));
}

}  // namespace resourced
