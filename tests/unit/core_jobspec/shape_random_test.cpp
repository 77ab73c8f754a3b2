// Random resources lists survive the conversion to a shape and back. Damaged shapes are parsed, or refused
// with a column.
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/jobspec/resource_list.hpp"
#include "core/jobspec/shape.hpp"
#include "vector_files.hpp"

using namespace resourced;
using namespace resourced::jobspec;
using nlohmann::json;

namespace {

class RandomResources {
 public:
  explicit RandomResources(unsigned seed) : random_(seed) {}

  json list(int depth) {
    json vertices = json::array();
    for (std::size_t n = below(3) + 1; n > 0; --n) vertices.push_back(vertex(depth));
    return vertices;
  }

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

 private:
  json vertex(int depth) {
    const bool slot = depth > 0 && below(4) == 0;
    json out = {{"type", slot ? "slot" : text()}, {"count", count()}};
    // A random type may be `slot`, but not without a label.
    if (out["type"] == "slot" && !slot) out["type"] = "node";
    if (slot) out["label"] = text() + std::to_string(++labels_);
    if (!slot && below(6) == 0) out["label"] = text();
    if (below(4) == 0) out["exclusive"] = below(2) == 0;
    if (below(4) == 0) out["unit"] = text();
    if (below(6) == 0) out["id"] = text();
    for (std::size_t n = below(3); n > 0; --n) {
      const std::string key = text();
      if (!out.contains(key) && key != "with") out[key] = value(3);
    }
    if (slot || (depth > 0 && below(2) == 0)) out["with"] = list(depth - 1);
    return out;
  }

  json count() {
    const std::size_t min = below(20) + 2;
    switch (below(6)) {
      case 0:
        return {{"min", min}};
      case 1:
        return {{"min", min}, {"max", min + below(9)}, {"operator", "+"}, {"operand", below(3) + 1}};
      case 2:
        return {{"min", min},
                {"max", min * 8},
                {"operator", below(2) == 0 ? "*" : "^"},
                {"operand", below(3) + 2}};
      case 3:
        return std::to_string(min) + "," + std::to_string(min + 2) + "-" + std::to_string(min + 2 + below(4));
      case 4:
        return "[" + std::to_string(min) + "," + std::to_string(min + 1) + "]";
      default:
        return below(3) == 0 ? 1 : below(1000) + 1;
    }
  }

  json value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return static_cast<int>(below(2000)) - 1000;
      case 3:
        return static_cast<double>(below(100000)) / 64.0 - 700.0;
      case 4:
      case 5:
        return text();
      case 6: {
        json array = json::array();
        for (std::size_t n = below(4); n > 0; --n) array.push_back(value(depth - 1));
        return array;
      }
      default: {
        json object = json::object();
        for (std::size_t n = below(4); n > 0; --n) object[text()] = value(depth - 1);
        return object;
      }
    }
  }

  std::string text() {
    static const std::vector<std::string> awkward = {
        "",    "x", "+x", "-x",  "slot",  "true", "null", "5",  "-5",  "1e5",    "a b", "a;b",
        "a/b", "{", "]",  "a:b", "a=b",   "'",    "\"",   "\\", "\n",  "\t\x01", "é",   "\U0001F600",
        "4GB", "+", "-",  ",",   "false", "01",   "1.",   ".5", "a'b", "a\"b\\", "@",   "\x7f"};
    static const std::vector<std::string> plain = {"node", "core",    "gpu", "memory",
                                                   "GB",   "read-db", "k",   "ib10g"};
    return below(3) == 0 ? awkward[below(awkward.size())] : plain[below(plain.size())];
  }

  std::mt19937 random_;
  int labels_ = 0;
};

}  // namespace

TEST_CASE("parse(print(r)) == r for random resources") {
  for (unsigned seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    const json resources = RandomResources(seed).list(4);
    CAPTURE(resources.dump());
    const ResourceGraph graph = resources_from_json(resources, ExtraKeys::allowed);
    REQUIRE(json(resources_to_json(graph)) == resources);
    const std::string shape = print_shape(graph);
    CAPTURE(shape);
    const ResourceGraph parsed = parse_shape(shape);
    REQUIRE(parsed == graph);
    REQUIRE(json(resources_to_json(parsed)) == resources);
  }
}

TEST_CASE("a damaged shape is parsed, or refused with a column inside it") {
  std::vector<std::string> shapes;
  for (const json& use_case : json::parse(test::read_vector("shape/use_cases.json"))) {
    shapes.push_back(use_case["shape"].get<std::string>());
  }
  shapes.emplace_back(R"(node{x,a:[1,"b\u0041",{c:'d'}],-e}/[slot=2-8:2{l,k:1e3}/core=1,2;gpu])");
  const std::string bytes = "[]{};,:=/+-x'\"\\ 0a\xc3\n";
  int parsed = 0;
  int refused = 0;
  for (unsigned seed = 1; seed <= 10000; ++seed) {
    CAPTURE(seed);
    RandomResources random(seed);
    std::string shape = shapes[random.below(shapes.size())];
    for (std::size_t n = random.below(3) + 1; n > 0; --n) {
      const std::size_t at = random.below(shape.size());
      if (random.below(2) == 0) {
        shape.erase(at, 1);
      } else {
        shape.insert(at, 1, bytes[random.below(bytes.size())]);
      }
    }
    CAPTURE(shape);
    try {
      const ResourceGraph graph = parse_shape(shape);
      REQUIRE(parse_shape(print_shape(graph)) == graph);
      ++parsed;
    } catch (const ShapeError& error) {
      REQUIRE(error.column() >= 1);
      REQUIRE(error.column() <= shape.size() + 1);
      REQUIRE_FALSE(point_at_column(shape, error.column()).empty());
      ++refused;
    }
  }
  CHECK(parsed > 500);
  CHECK(refused > 1000);
}
