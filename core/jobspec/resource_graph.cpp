#include <nlohmann/json.hpp>

#include "core/jobspec/resource_list.hpp"

namespace resourced::jobspec {

using text::Count;

namespace {

using nlohmann::ordered_json;

// Writes an object. Members are appended one by one, since operator[] would search all present ones.
class ObjectWriter {
 public:
  void add(std::string key, ordered_json value) { members_.push_back({std::move(key), std::move(value)}); }

  ordered_json take() { return std::move(members_); }

 private:
  ordered_json::object_t members_;
};

ordered_json range_to_json(const Count& count) {
  ObjectWriter range;
  range.add("min", count.min());
  if (count.max()) range.add("max", *count.max());
  if (count.states_step()) {
    range.add("operator", std::string(1, static_cast<char>(count.op())));
    range.add("operand", count.operand());
  }
  return range.take();
}

ordered_json count_to_json(const Vertex& vertex, RangeStyle ranges) {
  switch (vertex.count.kind()) {
    case Count::Kind::integer:
      return vertex.count.min();
    case Count::Kind::idset:
      return vertex.count_text.empty() ? vertex.count.encode() : vertex.count_text;
    case Count::Kind::range:
      break;
  }
  if (ranges == RangeStyle::compact) return vertex.count.encode();
  return range_to_json(vertex.count);
}

ordered_json vertex_to_json(const Vertex& vertex, RangeStyle ranges) {
  ObjectWriter object;
  object.add("type", vertex.type);
  object.add("count", count_to_json(vertex, ranges));
  if (vertex.label) object.add("label", *vertex.label);
  if (vertex.exclusive) object.add("exclusive", *vertex.exclusive);
  if (vertex.unit) object.add("unit", *vertex.unit);
  if (vertex.id) object.add("id", *vertex.id);
  if (vertex.extra) {
    for (const auto& [key, value] : vertex.extra->items()) object.add(key, value);
  }
  if (!vertex.with.empty()) object.add("with", resources_to_json(vertex.with, ranges));
  return object.take();
}

}  // namespace

bool operator==(const Vertex& a, const Vertex& b) {
  const auto extra = [](const Vertex& vertex) {
    return vertex.extra ? *vertex.extra : nlohmann::json::object();
  };
  return a.type == b.type && a.count == b.count && a.count_text == b.count_text &&
         a.exclusive == b.exclusive && a.label == b.label && a.unit == b.unit && a.id == b.id &&
         extra(a) == extra(b) && a.with == b.with;
}

nlohmann::ordered_json resources_to_json(const ResourceGraph& resources, RangeStyle ranges) {
  ordered_json list = ordered_json::array();
  for (const Vertex& vertex : resources) list.push_back(vertex_to_json(vertex, ranges));
  return list;
}

}  // namespace resourced::jobspec
