// Reads a resources list from JSON and checks it against RFC 14; the way out is in resource_graph.cpp.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/request/json_path.hpp"
#include "core/request/resource_graph.hpp"
#include "core/text/quote.hpp"

namespace resourced {

namespace {

using nlohmann::json;

std::uint64_t read_positive(const json& value, const JsonPath& path) {
  if (!value.is_number_integer()) path.fail("must be an integer");
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 1) path.fail("must be at least 1");
  const auto number = value.get<std::uint64_t>();
  if (number < 1) path.fail("must be at least 1");
  return number;
}

const std::string& read_string(const json& value, const JsonPath& path) {
  if (!value.is_string()) path.fail("must be a string");
  return value.get_ref<const std::string&>();
}

Count::Operator read_operator(const json& value, const JsonPath& path) {
  const std::string& text = read_string(value, path);
  for (const auto op : {Count::Operator::add, Count::Operator::multiply, Count::Operator::power}) {
    if (text.size() == 1 && text[0] == static_cast<char>(op)) return op;
  }
  path.fail("must be one of +, * and ^");
}

Count read_range(const json& object, const JsonPath& path) {
  Count::Range range;
  bool has_min = false;
  for (const auto& [key, value] : object.items()) {
    const JsonPath place = path / key;
    if (key == "min") {
      range.min = read_positive(value, place);
      has_min = true;
    } else if (key == "max") {
      range.max = read_positive(value, place);
    } else if (key == "operand") {
      range.operand = read_positive(value, place);
    } else if (key == "operator") {
      range.op = read_operator(value, place);
    } else {
      place.fail("is not a key of a range");
    }
  }
  if (!has_min) (path / "min").fail("is missing");
  if (range.op.has_value() != range.operand.has_value()) path.fail("operator and operand must come together");
  if (range.max && !range.op) path.fail("max needs operator and operand");
  try {
    return Count::range(range);
  } catch (const Error& error) {
    path.fail(error.what());
  }
}

void read_count(const json& value, const JsonPath& path, Vertex& vertex) {
  if (value.is_object()) {
    vertex.count = read_range(value, path);
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    try {
      vertex.count = Count::parse(text);
    } catch (const Error& error) {
      path.fail(error.what());
    }
    if (vertex.count.kind() == Count::Kind::idset) vertex.count_text = text;
  } else if (value.is_number_integer()) {
    vertex.count = Count::integer(read_positive(value, path));
  } else {
    path.fail("must be an integer, a range or an idset");
  }
}

class Reader {
 public:
  explicit Reader(ExtraKeys extra_keys) : extra_keys_(extra_keys) {}

  ResourceGraph list(const json& value, const JsonPath& path, std::size_t depth) {
    if (!value.is_array()) path.fail("must be an array");
    if (depth > max_graph_depth) path.fail(fmt::format("is more than {} levels deep", max_graph_depth));
    ResourceGraph vertices;
    vertices.reserve(value.size());
    for (const json& item : value) {
      read_vertex(item, path[vertices.size()], depth, vertices.emplace_back());
    }
    return vertices;
  }

 private:
  void read_vertex(const json& object, const JsonPath& path, std::size_t depth, Vertex& vertex) {
    if (!object.is_object()) path.fail("must be an object");
    for (const char* key : {"type", "count"}) {
      if (!object.contains(key)) (path / key).fail("is missing");
    }
    json extra = json::object();
    for (const auto& [key, value] : object.items()) {
      if (!read_member(key, value, path / key, depth, vertex)) {
        if (extra_keys_ == ExtraKeys::refused) (path / key).fail("is not a key of a resource vertex");
        extra.emplace(key, value);
      }
    }
    if (!extra.empty()) vertex.extra = std::make_shared<const json>(std::move(extra));
    if (vertex.is_slot()) check_label(vertex, path);
  }

  // Returns false for a key that RFC 14 does not have.
  bool read_member(const std::string& key, const json& value, const JsonPath& path, std::size_t depth,
                   Vertex& vertex) {
    if (key == "type") {
      vertex.type = read_string(value, path);
    } else if (key == "count") {
      read_count(value, path, vertex);
    } else if (key == "label") {
      vertex.label = read_string(value, path);
    } else if (key == "unit") {
      vertex.unit = read_string(value, path);
    } else if (key == "id") {
      vertex.id = read_string(value, path);
    } else if (key == "exclusive") {
      if (!value.is_boolean()) path.fail("must be true or false");
      vertex.exclusive = value.get<bool>();
    } else if (key == "with") {
      vertex.with = list(value, path, depth + 1);
    } else {
      return false;
    }
    return true;
  }

  void check_label(const Vertex& slot, const JsonPath& path) {
    if (!slot.label) (path / "label").fail("is missing: a slot needs one");
    if (!labels_.insert(*slot.label).second) {
      (path / "label").fail(fmt::format("{} is the label of another slot", resourced::quoted(*slot.label)));
    }
  }

  ExtraKeys extra_keys_;
  std::set<std::string> labels_;
};

}  // namespace

ResourceGraph resources_from_json(const nlohmann::json& list, ExtraKeys extra_keys, const std::string& name) {
  const JsonPath path(name);
  if (list.is_array() && list.empty()) path.fail("must have at least one vertex");
  return Reader(extra_keys).list(list, path, 1);
}

}  // namespace resourced
