// Shapes (RFC 46): the meaning of each form. Invalid shapes are in shape_error_test.cpp, random trees in
// shape_random_test.cpp.
#include "core/jobspec/shape.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/document/document.hpp"
#include "core/jobspec/resource_list.hpp"
#include "vector_files.hpp"

using namespace resourced;
using namespace resourced::jobspec;
using nlohmann::json;

namespace {

json to_json(const ResourceGraph& resources, RangeStyle ranges = RangeStyle::dictionary) {
  return resources_to_json(resources, ranges);
}

// A vertex without children, written as JSON.
json only_vertex(const std::string& shape) {
  const json list = to_json(parse_shape(shape));
  REQUIRE(list.size() == 1);
  return list[0];
}

}  // namespace

TEST_CASE("every use case of RFC 46 gives the resources that are printed there") {
  const json cases = json::parse(test::read_vector("shape/use_cases.json"));
  CHECK(cases.size() == 17);
  for (const json& use_case : cases) {
    CAPTURE(use_case["use_case"]);
    const auto shape = use_case["shape"].get<std::string>();
    CHECK(to_json(parse_shape(shape)) == use_case["resources"]);
    CHECK(print_shape(parse_shape(shape)) == shape);
  }
}

TEST_CASE("the use cases of RFC 46 are the resources of RFC 14's files") {
  for (const json& use_case : json::parse(test::read_vector("shape/use_cases.json"))) {
    const auto name = use_case["use_case"].get<std::string>();
    CAPTURE(name);
    const json file = document::read_document(test::read_vector("spec_14/use_case_" + name + ".yaml"));
    const ResourceGraph expected = resources_from_json(file["resources"], ExtraKeys::refused);
    ResourceGraph parsed = parse_shape(use_case["shape"].get<std::string>());
    // The RFC calls the slot of this one `default` in the shape and `myslot` in the jobspec.
    if (name == "2.2") parsed[0].label = "myslot";
    CHECK(parsed == expected);
  }
}

TEST_CASE("keys are written in the order of the examples") {
  const auto keys = [](const std::string& shape) {
    std::string names;
    const auto list = resources_to_json(parse_shape(shape));
    for (const auto& [key, value] : list[0].items()) names += key + ' ';
    return names;
  };
  CHECK(keys("slot=2-3{a,id:i,x,unit:u,zeta:1,alpha:2}/core") ==
        "type count label exclusive unit id alpha zeta with ");
  CHECK(resources_to_json(parse_shape("node=3-30")).dump() ==
        R"([{"type":"node","count":{"min":3,"max":30,"operator":"+","operand":1}}])");
}

TEST_CASE("a count is an integer, a range or an idset") {
  struct Row {
    const char* count;
    const char* expected;
    const char* compact;
  };
  const std::vector<Row> rows = {
      {"1", "1", "1"},
      {"[1]", "1", "1"},
      {"42", "42", "42"},
      {"18446744073709551615", "18446744073709551615", "18446744073709551615"},
      {"2+", R"({"min":2})", R"("2+")"},
      {"[2+]", R"({"min":2})", R"("2+")"},
      {"2+:1", R"({"min":2,"operator":"+","operand":1})", nullptr},
      {"2+:3", R"({"min":2,"operator":"+","operand":3})", R"("2+:3")"},
      {"2+:3:*", R"({"min":2,"operator":"*","operand":3})", R"("2+:3:*")"},
      {"3-30", R"({"min":3,"max":30,"operator":"+","operand":1})", R"("3-30")"},
      {"[3-30]", R"({"min":3,"max":30,"operator":"+","operand":1})", R"("3-30")"},
      {"5-5", R"({"min":5,"max":5,"operator":"+","operand":1})", R"("5-5")"},
      {"1-5:2", R"({"min":1,"max":5,"operator":"+","operand":2})", R"("1-5:2")"},
      {"1-16:2:*", R"({"min":1,"max":16,"operator":"*","operand":2})", R"("1-16:2:*")"},
      {"2-256:2:^", R"({"min":2,"max":256,"operator":"^","operand":2})", R"("2-256:2:^")"},
      {"4,9,16,25", R"("4,9,16,25")", R"("4,9,16,25")"},
      {"[4,9]", R"("[4,9]")", R"("[4,9]")"},
      {"1,2,3-5", R"("1,2,3-5")", R"("1,2,3-5")"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.count));
    const ResourceGraph parsed = parse_shape("core=" + std::string(row.count));
    CHECK(to_json(parsed)[0]["count"] == json::parse(row.expected));
    if (row.compact != nullptr)
      CHECK(to_json(parsed, RangeStyle::compact)[0]["count"] == json::parse(row.compact));
    CHECK(parse_shape(print_shape(parsed)) == parsed);
  }
  CHECK(only_vertex("core")["count"] == 1);
}

TEST_CASE("lists") {
  CHECK(to_json(parse_shape("[node]")) == to_json(parse_shape("node")));
  CHECK(to_json(parse_shape("node/[core]")) == to_json(parse_shape("node/core")));
  const json siblings = to_json(parse_shape("[a/b;c/[d;e/f];g]"));
  CHECK(siblings == json::parse(R"([
    {"type":"a","count":1,"with":[{"type":"b","count":1}]},
    {"type":"c","count":1,"with":[{"type":"d","count":1},{"type":"e","count":1,"with":[{"type":"f","count":1}]}]},
    {"type":"g","count":1}])"));
}

TEST_CASE("what stands in braces") {
  struct Row {
    const char* items;
    const char* expected;
  };
  const std::vector<Row> rows = {
      {"{}", "{}"},
      {"{x}", R"({"exclusive":true})"},
      {"{+x}", R"({"exclusive":true})"},
      {"{-x}", R"({"exclusive":false})"},
      {"{x:true}", R"({"exclusive":true})"},
      {"{x:false}", R"({"exclusive":false})"},
      {"{exclusive}", R"({"exclusive":true})"},
      {"{+exclusive}", R"({"exclusive":true})"},
      {"{-exclusive}", R"({"exclusive":false})"},
      {"{exclusive:false}", R"({"exclusive":false})"},
      {R"({"exclusive":false})", R"({"exclusive":false})"},
      {R"({"x":1})", R"({"x":1})"},
      {"{'x'}", R"({"x":true})"},
      {"{unit:GB}", R"({"unit":"GB"})"},
      {"{unit:'GB/s'}", R"({"unit":"GB/s"})"},
      {"{unit:\"5\"}", R"({"unit":"5"})"},
      {"{unit:4GB}", R"({"unit":"4GB"})"},
      {"{unit:1.2.3}", R"({"unit":"1.2.3"})"},
      {"{unit:012}", R"({"unit":"012"})"},
      {"{unit:+5}", R"({"unit":"+5"})"},
      {"{unit:True}", R"({"unit":"True"})"},
      {"{id:i,label:l,unit:u,-x}", R"({"id":"i","label":"l","unit":"u","exclusive":false})"},
      {"{a,+b,-c}", R"({"a":true,"b":true,"c":false})"},
      {"{a:true,b:false,c:null}", R"({"a":true,"b":false,"c":null})"},
      {"{a:1,b:-1,c:1.5,d:1e3,e:-0.5E-2}", R"({"a":1,"b":-1,"c":1.5,"d":1000.0,"e":-0.005})"},
      {"{a:-9223372036854775808,b:18446744073709551615}",
       R"({"a":-9223372036854775808,"b":18446744073709551615})"},
      {"{a:18446744073709551616,b:-9223372036854775809,c:[1e-999]}",
       R"({"a":18446744073709551616.0,"b":-9223372036854775808.0,"c":[0.0]})"},
      {R"({a:"\u00e9\n\ud83d\ude00\/"})", R"({"a":"\u00e9\n\ud83d\ude00/"})"},
      {R"({a:'it\'s "so"'})", R"({"a":"it's \"so\""})"},
      {R"({a:"it's"})", R"({"a":"it's"})"},
      {"{a:'b c;d,e{f}[g]:h=i/j'}", R"({"a":"b c;d,e{f}[g]:h=i/j"})"},
      {R"({"a b":1,'c':2})", R"({"a b":1,"c":2})"},
      {R"({-"a b"})", R"({"a b":false})"},
      {"{a:''}", R"({"a":""})"},
      {"{a:[]}", R"({"a":[]})"},
      {"{a:{}}", R"({"a":{}})"},
      {R"({a:[1,"b",c,null,[2],{d:e}]})", R"({"a":[1,"b","c",null,[2],{"d":"e"}]})"},
      {R"({a:{b:c,+d,-e,f,"g":{h:1}}})", R"({"a":{"b":"c","d":true,"e":false,"f":true,"g":{"h":1}}})"},
      {"{a:[ 1 , 2\t,\n[ ] ,{ }\r]}", R"({"a":[1,2,[],{}]})"},
      {R"({a:{ "b" : 1, "c": [ true, null ], d: e)"
       "\n,-f}}",
       R"({"a":{"b":1,"c":[true,null],"d":"e","f":false}})"},
      {"{pos:{x:1,y:2}}", R"({"pos":{"x":1,"y":2}})"},
      {"{pos:{type:a,count:2}}", R"({"pos":{"type":"a","count":2}})"},
      {"{größe:groß}", R"({"größe":"groß"})"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.items));
    json expected = json::parse(row.expected);
    expected["type"] = "node";
    expected["count"] = 2;
    const std::string shape = "node=2" + std::string(row.items);
    CHECK(only_vertex(shape) == expected);
    CHECK(parse_shape(print_shape(parse_shape(shape))) == parse_shape(shape));
  }
}

TEST_CASE("types may be quoted") {
  CHECK(only_vertex("'a b'=2") == json::parse(R"({"type":"a b","count":2})"));
  CHECK(only_vertex("\"slot\"{a}/core")["label"] == "a");
  CHECK(only_vertex("4GB")["type"] == "4GB");
}

TEST_CASE("labels of slots") {
  SUBCASE("the only slot has a default") {
    CHECK(only_vertex("slot/core")["label"] == "default");
    CHECK(to_json(parse_shape("slot/core", {.default_label = "task"}))[0]["label"] == "task");
    CHECK(to_json(parse_shape("slot{mine}/core", {.default_label = "task"}))[0]["label"] == "mine");
  }
  SUBCASE("a label is a string whatever it looks like") {
    for (const std::string label : {"true", "5", "null", "x", "4GB-node", "read-db"}) {
      CHECK(only_vertex("slot{" + label + "}/core")["label"] == label);
    }
    CHECK(only_vertex("slot{'+a b'}/core")["label"] == "+a b");
  }
  SUBCASE("items follow it") {
    const json slot = only_vertex("slot=2{a,x,unit:u,k:1}/core");
    CHECK(slot["label"] == "a");
    CHECK(slot["exclusive"] == true);
    CHECK(slot["unit"] == "u");
    CHECK(slot["k"] == 1);
  }
  SUBCASE("several slots, also in each other") {
    CHECK(to_json(parse_shape("[slot{a}/core;slot{b}/core]")).size() == 2);
    CHECK(only_vertex("slot{a}/slot{b}/core")["with"][0]["label"] == "b");
  }
}

TEST_CASE("the shape that is printed is short") {
  struct Row {
    const char* resources;
    const char* shape;
  };
  const std::vector<Row> rows = {
      {R"([{"type":"slot","count":1,"label":"default","with":[{"type":"core","count":2}]}])", "slot/core=2"},
      {R"([{"type":"slot","count":1,"label":"a","with":[{"type":"core","count":1}]}])", "slot{a}/core"},
      {R"([{"type":"slot","count":1,"label":"default","exclusive":true,"with":[{"type":"core","count":1}]}])",
       "slot{default,x}/core"},
      {R"([{"type":"node","count":1,"exclusive":false,"unit":"5","id":"a b"}])",
       R"(node{-x,unit:"5",id:"a b"})"},
      {R"([{"type":"node","count":"2-4"}])", "node=2-4"},
      {R"([{"type":"node","count":"7"}])", "node=7"},
      {R"([{"type":"node","count":1,"x":true,"k":false,"o":{"x":true,"y":[1,"true"]}}])",
       R"(node{-k,o:{x,y:[1,"true"]},"x"})"},
      {R"([{"type":"a","count":1},{"type":"b","count":1,"with":[{"type":"c","count":1},{"type":"d","count":1}]}])",
       "[a;b/[c;d]]"},
      {R"([{"type":"","count":1}])", R"("")"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.resources));
    const ResourceGraph resources = resources_from_json(json::parse(row.resources), ExtraKeys::allowed);
    CHECK(print_shape(resources) == row.shape);
    CHECK(parse_shape(row.shape) == resources);
  }
}

TEST_CASE("parse(print(r)) == r for every resources list of RFC 14 and RFC 25") {
  std::vector<std::string> names = test::list_vectors("spec_14", ".yaml");
  for (const std::string& name : test::list_vectors("spec_25", ".yaml")) names.push_back(name);
  CHECK(names.size() == 25);
  for (const std::string& name : names) {
    CAPTURE(name);
    const json resources = document::read_document(test::read_vector(name))["resources"];
    const ResourceGraph graph = resources_from_json(resources, ExtraKeys::refused);
    CHECK(parse_shape(print_shape(graph)) == graph);
    CHECK(to_json(parse_shape(print_shape(graph))) == resources);
  }
}

TEST_CASE("what no shape can say is refused") {
  const auto reason = [](const ResourceGraph& resources) {
    try {
      return print_shape(resources);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  Vertex slot;
  slot.type = "slot";
  slot.label = "a";
  Vertex node;
  node.type = "node";
  node.with.push_back(slot);
  CHECK(reason({node}) == "resources[0].with[0]: a slot without children has no shape");
  CHECK(reason({}) == "resources: an empty list has no shape");
}
