// Reads a resources list from JSON and checks it against RFC 14; resource_graph.cpp writes it.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/jobspec/resource_list.hpp"
#include "core/json/json_path.hpp"
#include "core/text/quote.hpp"

namespace resourced::jobspec {

using json_text::JsonPath;
using text::Count;

namespace {

using nlohmann::json;

Count::Operator read_operator(const json& value, const JsonPath& path) {
  const std::string& text = require_string(value, path);
  for (const auto op : {Count::Operator::add, Count::Operator::multiply, Count::Operator::power}) {
    if (text.size() == 1 && text[0] == static_cast<char>(op)) return op;
  }
  path.fail("must be one of +, * and ^");
}

Count read_range(const json& object, const JsonPath& path, CanonicalEdition edition) {
  Count::Range range;
  (void)require_member(object, "min", path);
  for (const auto& [key, value] : object.items()) {
    const JsonPath place = path / key;
    if (key == "min") {
      range.min = require_positive(value, place);
    } else if (key == "max") {
      range.max = require_positive(value, place);
    } else if (key == "operand") {
      range.operand = require_positive(value, place);
    } else if (key == "operator") {
      range.op = read_operator(value, place);
    } else {
      place.fail("is not a key of a range");
    }
  }
  if (range.op.has_value() != range.operand.has_value()) path.fail("operator and operand must come together");
  if (edition == CanonicalEdition::schema && range.max.has_value() != range.op.has_value())
    path.fail("max must come together with operator and operand (schema)");
  try {
    return Count::range(range);
  } catch (const Error& error) {
    path.fail(error.what());
  }
}

void read_count(const json& value, const JsonPath& path, CanonicalEdition edition, Vertex& vertex) {
  if (value.is_object()) {
    vertex.count = read_range(value, path, edition);
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    try {
      vertex.count = Count::parse(text);
    } catch (const Error& error) {
      path.fail(error.what());
    }
    if (vertex.count.kind() == Count::Kind::idset) vertex.count_text = text;
    if (edition == CanonicalEdition::schema && text.find_first_of(",+:") == std::string::npos)
      path.fail(
          fmt::format("{} is an idset and a range, and must be one of them (schema)", text::quoted(text)));
  } else if (value.is_number_integer()) {
    vertex.count = Count::integer(require_positive(value, path));
  } else {
    path.fail("must be an integer, a range or an idset");
  }
}

class Reader {
 public:
  Reader(ExtraKeys extra_keys, CanonicalEdition edition) : extra_keys_(extra_keys), edition_(edition) {}

  ResourceGraph list(const json& value, const JsonPath& path, std::size_t depth) {
    if (!value.is_array()) path.fail("must be an array");
    if (depth > max_graph_depth) path.fail(fmt::format("is more than {} levels deep", max_graph_depth));
    ResourceGraph vertices;
    vertices.reserve(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      read_vertex(value[i], path[i], depth, vertices.emplace_back());
    }
    return vertices;
  }

 private:
  void read_vertex(const json& object, const JsonPath& path, std::size_t depth, Vertex& vertex) {
    require_object(object, path);
    (void)require_member(object, "type", path);
    (void)require_member(object, "count", path);
    json extra = json::object();
    for (const auto& [key, value] : object.items()) {
      if (!read_member(key, value, path / key, depth, vertex)) {
        if (extra_keys_ == ExtraKeys::refused) (path / key).fail("is not a key of a resource vertex");
        extra.emplace(key, value);
      }
    }
    if (!extra.empty()) vertex.extra = std::make_shared<const json>(std::move(extra));
    check_label(vertex, path);
    if (vertex.is_slot() && vertex.with.empty())
      (path / "with").fail("is missing or empty: a slot needs at least one vertex in it");
  }

  // Reads a member of a vertex. Returns false for a key that RFC 14 does not define.
  bool read_member(const std::string& key, const json& value, const JsonPath& path, std::size_t depth,
                   Vertex& vertex) {
    if (key == "type") {
      vertex.type = require_string(value, path);
    } else if (key == "count") {
      read_count(value, path, edition_, vertex);
    } else if (key == "label") {
      vertex.label = require_string(value, path);
    } else if (key == "unit") {
      vertex.unit = require_string(value, path);
    } else if (key == "id") {
      vertex.id = require_string(value, path);
    } else if (key == "exclusive") {
      vertex.exclusive = require_boolean(value, path);
    } else if (key == "with") {
      vertex.with = list(value, path, depth + 1);
      // A slot without vertices gets an error of its own, with or without the key.
      if (vertex.with.empty() && !vertex.is_slot()) path.fail("must have at least one vertex");
    } else {
      return false;
    }
    return true;
  }

  void check_label(const Vertex& vertex, const JsonPath& path) {
    if (!vertex.label && vertex.is_slot()) (path / "label").fail("is missing: a slot needs one");
    // In a shape (RFC 46) only the labels of slots must be unique, in a jobspec all labels.
    const bool in_namespace = vertex.is_slot() || extra_keys_ == ExtraKeys::refused;
    if (in_namespace && vertex.label && !labels_.insert(*vertex.label).second) {
      (path / "label").fail(fmt::format("{} is the label of another vertex", text::quoted(*vertex.label)));
    }
  }

  ExtraKeys extra_keys_;
  CanonicalEdition edition_;
  std::set<std::string> labels_;
};

}  // namespace

ResourceGraph resources_from_json(const nlohmann::json& list, ExtraKeys extra_keys, const std::string& name,
                                  CanonicalEdition edition) {
  const JsonPath path(name);
  if (list.is_array() && list.empty()) path.fail("must have at least one vertex");
  return Reader(extra_keys, edition).list(list, path, 1);
}

}  // namespace resourced::jobspec
