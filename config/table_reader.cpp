#include "config/table_reader.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/faults.hpp"
#include "config/toml_text.hpp"
#include "core/error.hpp"
#include "core/text/duration.hpp"
#include "core/text/nearest.hpp"
#include "core/text/node_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

namespace {

std::string_view type_name(const Node& node) {
  constexpr std::string_view names[] = {"a date or a time", "a boolean", "an integer", "a number",
                                        "a string",         "an array",  "a table"};
  return names[node.value.index()];
}

/// Returns a key for a message: unquoted if TOML allows it.
std::string printable_key(std::string_view key) {
  return key.size() <= text::max_quoted && is_bare_key(key) ? std::string(key) : text::quoted(key);
}

}  // namespace

std::string KeyPath::text() const {
  std::string text = parent ? parent->text() : std::string();
  if (key.empty()) return text;
  if (!text.empty()) text += '.';
  text += printable_key(key);
  if (index) text += fmt::format("[{}]", *index);
  return text;
}

std::string place_text(std::string_view where, std::string_view key, std::string_view text) {
  std::string line;
  for (const std::string_view part : {where, key}) {
    if (!part.empty()) line.append(part).append(": ");
  }
  return line.append(text);
}

TableReader::TableReader(const Document& document, const Node& node, const KeyPath& path)
    : document_(document), node_(node), path_(path) {
  if (!node.table())
    throw Error(EINVAL, place_text(document.where(node), path.text(),
                                   fmt::format("must be a table, not {}", type_name(node))));
}

TableReader::TableReader(const Document& document, const Node& node, const KeyPath& path,
                         std::span<const Setting> known, std::span<const std::string_view> others)
    : TableReader(document, node, path) {
  check_keys(known, others);
}

void TableReader::check_keys(std::span<const Setting> known, std::span<const std::string_view> others) const {
  FaultList faults;
  for (const Member& member : *node_.table()) {
    if (faults.is_full()) break;
    if (std::ranges::find(known, member.key, &Setting::key) != known.end() ||
        std::ranges::find(others, member.key) != others.end())
      continue;
    std::vector<std::string_view> keys;
    for (const Setting& setting : known) keys.push_back(setting.key);
    const auto meant = text::nearest(member.key, keys);
    faults.attempt([&] {
      fail(member.key, fmt::format("unknown key, not one of {}{}", fmt::join(keys, ", "),
                                   meant ? fmt::format("; did you mean {}?", *meant) : ""));
    });
  }
  faults.check();
}

void TableReader::fail(std::string_view key, std::string_view text) const {
  const Node* node = find(key);
  throw Error(EINVAL, place_text(document_.where(node ? *node : node_), KeyPath{&path_, key}.text(), text));
}

void TableReader::fail_type(std::string_view key, std::string_view expected) const {
  fail(key, fmt::format("must be {}, not {}", expected, type_name(*find(key))));
}

template <class T>
const T* TableReader::get(std::string_view key, std::string_view expected) const {
  const Node* node = find(key);
  if (!node) return nullptr;
  const T* value = std::get_if<T>(&node->value);
  if (!value) fail_type(key, expected);
  return value;
}

bool TableReader::boolean(std::string_view key, bool otherwise) const {
  const bool* value = get<bool>(key, "true or false");
  return value ? *value : otherwise;
}

std::optional<std::int64_t> TableReader::integer(std::string_view key, std::int64_t min,
                                                 std::int64_t max) const {
  const auto* value = get<std::int64_t>(key, "an integer");
  if (!value) return std::nullopt;
  if (*value < min || *value > max) fail(key, fmt::format("{} is not from {} to {}", *value, min, max));
  return *value;
}

std::optional<Seconds> TableReader::duration(std::string_view key) const {
  const Node* node = find(key);
  if (!node) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&node->value))
    return checked(key, [&] { return text::parse_duration(*text); });
  double seconds = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&node->value)) {
    seconds = static_cast<double>(*integer);
  } else if (const auto* number = std::get_if<double>(&node->value)) {
    seconds = *number;
  } else {
    fail_type(key, "a duration (such as \"5s\", or a number of seconds)");
  }
  if (std::isnan(seconds) || seconds < 0) fail(key, fmt::format("{} is not a duration", seconds));
  return Seconds(seconds);
}

const std::string* TableReader::string(std::string_view key) const {
  return get<std::string>(key, "a string");
}

std::string TableReader::filled_string(std::string_view key) const {
  const std::string* value = string(key);
  if (!value) return {};
  if (value->empty()) fail(key, "is empty");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::any_of(value->begin(), value->end(), is_control)) fail(key, "holds a control character");
  return *value;
}

std::string TableReader::path(std::string_view key) const {
  const std::string value = filled_string(key);
  return value.empty() ? value : document_.resolve(*find(key), value);
}

std::vector<std::string> TableReader::strings(std::string_view key) const {
  std::vector<std::string> values;
  const Array* elements = array(key);
  if (!elements) return values;
  values.reserve(elements->size());
  for (std::size_t i = 0; i < elements->size(); ++i) {
    const Node& element = (*elements)[i];
    const auto* value = std::get_if<std::string>(&element.value);
    if (!value)
      throw Error(EINVAL, place_text(document_.where(element), KeyPath{&path_, key, i}.text(),
                                     fmt::format("must be a string, not {}", type_name(element))));
    values.push_back(*value);
  }
  return values;
}

text::IdSet TableReader::idset(std::string_view key) const {
  const auto* text = get<std::string>(key, "an idset in a string");
  return text ? checked(key, [&] { return text::IdSet::parse(*text); }) : text::IdSet();
}

text::Hostlist TableReader::hostlist(std::string_view key) const {
  const auto* text = get<std::string>(key, "a hostlist in a string");
  if (!text) return {};
  return checked(key, [&] {
    text::Hostlist hosts = text::Hostlist::parse(*text);
    text::check_node_names(hosts);
    return hosts;
  });
}

const Array* TableReader::array(std::string_view key) const { return get<Array>(key, "an array"); }

void TableReader::each_table(std::string_view key, std::string_view section,
                             const std::function<void(const TableReader&)>& read) const {
  const Array& elements = *array(key);
  const std::span<const Setting> known = settings_of(section);
  FaultList faults;
  for (std::size_t i = 0; i < elements.size() && !faults.is_full(); ++i) {
    faults.attempt([&] {
      const KeyPath place{&path_, key, i};
      read(TableReader(document_, elements[i], place, known));
    });
  }
  faults.check();
}

}  // namespace resourced::config
