// Canonical jobspec (RFC 14): the examples of the RFC, and the errors by its schema.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/document/document.hpp"
#include "core/jobspec/jobspec.hpp"
#include "core/jobspec/resource_list.hpp"
#include "jobspec_tools.hpp"
#include "vector_files.hpp"

using namespace resourced;
using namespace resourced::jobspec;
using nlohmann::json;
using test::Edit;

namespace {

std::string canonical_verdict(const json& jobspec, CanonicalEdition edition = CanonicalEdition::prose) {
  return test::verdict([&] { check_canonical_jobspec(jobspec, edition); });
}

json canonical_base() {
  return json::parse(R"({
    "version": 999,
    "resources": [
      {"type": "switch", "count": {"min": 2}, "with": [
        {"type": "slot", "count": "4,9", "label": "a", "with": [
          {"type": "node", "count": 1, "exclusive": false, "id": "n", "unit": "u", "label": "l"}]}]},
      {"type": "slot", "count": 1, "label": "b", "with": [
        {"type": "node", "count": 1, "with": [{"type": "core", "count": 2}]}]}],
    "tasks": [
      {"command": ["app"], "slot": "a", "count": {"per_slot": 1}, "distribution": "block",
       "attributes": {"environment": {"A": null}, "other": "x"}},
      {"command": ["app"], "slot": "b", "count": {"per_resource": {"type": "node", "count": 1}}}],
    "attributes": {"system": {"dependencies": [{"scheme": "string", "value": "foo", "type": "in"}]}, "user": {}}})");
}

}  // namespace

TEST_CASE("every example of RFC 14 and RFC 25 is valid") {
  for (const std::string directory : {"spec_14", "spec_25"}) {
    for (const std::string& name : test::list_vectors(directory, ".yaml")) {
      CAPTURE(name);
      CHECK(canonical_verdict(document::read_document(test::read_vector(name))) == "valid");
    }
  }
}

TEST_CASE("what is allowed") {
  const std::vector<Edit> edits = {
      {"/version", "1"},
      {"/attributes", "null"},
      {"/attributes/system", nullptr},
      {"/attributes/system/duration", "0.5"},
      {"/attributes/system/constraints", R"({"properties":["a"]})"},
      {"/resources/0/count", "1"},
      {"/resources/0/count", R"("2+")"},
      {"/resources/0/count", R"("[3-30]")"},
      {"/resources/0/count", R"("1-16:2:*")"},
      {"/resources/0/count", R"("7")"},
      {"/resources/0/count", R"({"min":1,"max":8,"operator":"*","operand":2})"},
      {"/resources/0/count", R"({"min":2,"operator":"+","operand":3})"},
      {"/resources/0/count", R"({"min":2,"max":4})"},
      {"/tasks/1/count/per_resource/type", R"("core")"},
      {"/attributes/system/environment", R"({"A":"1","B":null})"},
      {"/resources/0/with", nullptr},
      {"/tasks/0/count", R"({"total":5})"},
  };
  CHECK(canonical_verdict(canonical_base()) == "valid");
  for (const Edit& edit : edits) {
    const json jobspec = test::edited(canonical_base(), {edit});
    CAPTURE(std::string(edit.pointer));
    CAPTURE(jobspec.dump());
    // Without the children of this vertex, the first slot is missing.
    const bool no_slot = std::string(edit.pointer) == "/resources/0/with";
    CHECK(canonical_verdict(jobspec) ==
          (no_slot ? "tasks[0].slot: \"a\" is not the label of a slot" : "valid"));
  }
}

TEST_CASE("what is refused, with its path and the reason") {
  struct Row {
    Edit edit;
    const char* error;
  };
  const std::vector<Row> rows = {
      {{"", "1"}, "jobspec: must be an object"},
      {{"/version", nullptr}, "version: is missing"},
      {{"/version", "\"999\""}, "version: must be an integer"},
      {{"/version", "true"}, "version: must be an integer"},
      {{"/resources", nullptr}, "resources: is missing"},
      {{"/resources", "{}"}, "resources: must be an array"},
      {{"/resources", "[]"}, "resources: must have at least one vertex"},
      {{"/resources/1", "\"slot\""}, "resources[1]: must be an object"},
      {{"/resources/0/type", nullptr}, "resources[0].type: is missing"},
      {{"/resources/0/type", "null"}, "resources[0].type: must be a string"},
      {{"/resources/0/count", nullptr}, "resources[0].count: is missing"},
      {{"/resources/0/count", "0"}, "resources[0].count: must be at least 1"},
      {{"/resources/0/count", "-3"}, "resources[0].count: must be at least 1"},
      {{"/resources/0/count", "1.5"}, "resources[0].count: must be an integer, a range or an idset"},
      {{"/resources/0/count", "true"}, "resources[0].count: must be an integer, a range or an idset"},
      {{"/resources/0/count", "null"}, "resources[0].count: must be an integer, a range or an idset"},
      {{"/resources/0/count", "\"\""}, "resources[0].count: \"\" is not a count"},
      {{"/resources/0/count", "\"0\""}, "resources[0].count: \"0\" is not a count"},
      {{"/resources/0/count", "\"5-2\""}, "resources[0].count: \"5-2\" is not a count"},
      {{"/resources/0/count", "\"2 +\""}, "resources[0].count: \"2 +\" is not a count"},
      {{"/resources/0/count", "{}"}, "resources[0].count.min: is missing"},
      {{"/resources/0/count", "{\"max\":2}"}, "resources[0].count.min: is missing"},
      {{"/resources/0/count/min", "0"}, "resources[0].count.min: must be at least 1"},
      {{"/resources/0/count/min", "\"1\""}, "resources[0].count.min: must be an integer"},
      {{"/resources/0/count/operator", "\"+\""},
       "resources[0].count: operator and operand must come together"},
      {{"/resources/0/count/operand", "1"}, "resources[0].count: operator and operand must come together"},
      {{"/resources/0/count/step", "1"}, "resources[0].count.step: is not a key of a range"},
      {{"/resources/0/count", R"({"min":3,"max":2,"operator":"+","operand":1})"}, "resources[0].count: "},
      {{"/resources/0/count", R"({"min":1,"max":2,"operator":"-","operand":1})"},
       "resources[0].count.operator: must be one of +, * and ^"},
      {{"/resources/0/count", R"({"min":1,"max":2,"operator":1,"operand":1})"},
       "resources[0].count.operator: must be a string"},
      {{"/resources/0/count", R"({"min":1,"max":2,"operator":"*","operand":1})"}, "resources[0].count: "},
      {{"/resources/0/count", R"({"min":1,"max":2,"operator":"+","operand":0})"},
       "resources[0].count.operand: must be at least 1"},
      {{"/resources/0/extra", "1"}, "resources[0].extra: is not a key of a resource vertex"},
      {{"/resources/0/with", "null"}, "resources[0].with: must be an array"},
      {{"/resources/0/with", "[]"}, "resources[0].with: must have at least one vertex"},
      {{"/resources/1/with/0/with", "[]"}, "resources[1].with[0].with: must have at least one vertex"},
      {{"/resources/0/with/0/label", nullptr}, "resources[0].with[0].label: is missing: a slot needs one"},
      {{"/resources/1/label", "\"a\""}, "resources[1].label: \"a\" is the label of another vertex"},
      {{"/resources/1/label", "\"l\""}, "resources[1].label: \"l\" is the label of another vertex"},
      {{"/resources/1/with/0/label", "\"a\""},
       "resources[1].with[0].label: \"a\" is the label of another vertex"},
      {{"/resources/1/with", nullptr},
       "resources[1].with: is missing or empty: a slot needs at least one vertex"},
      {{"/resources/1/with", "[]"},
       "resources[1].with: is missing or empty: a slot needs at least one vertex"},
      {{"/resources/0/with/0/with/0/exclusive", "null"},
       "resources[0].with[0].with[0].exclusive: must be true or false"},
      {{"/resources/0/with/0/with/0/unit", "1"}, "resources[0].with[0].with[0].unit: must be a string"},
      {{"/resources/0/with/0/with/0/id", "1"}, "resources[0].with[0].with[0].id: must be a string"},
      {{"/resources/0/with/0/with/0/label", "1"}, "resources[0].with[0].with[0].label: must be a string"},
      {{"/tasks", nullptr}, "tasks: is missing"},
      {{"/tasks", "{}"}, "tasks: must be an array"},
      {{"/tasks", "[]"}, "tasks: must have at least one task"},
      {{"/tasks/1", "1"}, "tasks[1]: must be an object"},
      {{"/tasks/1/command", nullptr}, "tasks[1].command: is missing"},
      {{"/tasks/1/command", "\"app\""}, "tasks[1].command: must be an array of strings"},
      {{"/tasks/1/command", "[]"}, "tasks[1].command: must have at least one string"},
      {{"/tasks/1/command", "[null]"}, "tasks[1].command[0]: must be a string"},
      {{"/tasks/1/slot", nullptr}, "tasks[1].slot: is missing"},
      {{"/tasks/1/slot", "\"l\""}, "tasks[1].slot: \"l\" is not the label of a slot"},
      {{"/tasks/1/count", nullptr}, "tasks[1].count: is missing"},
      {{"/tasks/1/count", "[]"}, "tasks[1].count: must be an object"},
      {{"/tasks/1/count", "{}"}, "tasks[1].count: must have one of per_slot, per_resource and total"},
      {{"/tasks/1/count/total", "1"}, "tasks[1].count: must have one of per_slot, per_resource and total"},
      {{"/tasks/1/count", "{\"each\":1}"}, "tasks[1].count.each: is not a key of a task count"},
      {{"/tasks/1/count", "{\"total\":0}"}, "tasks[1].count.total: must be at least 1"},
      {{"/tasks/1/count/per_resource", "1"}, "tasks[1].count.per_resource: must be an object"},
      {{"/tasks/1/count/per_resource/type", "\"gpu\""},
       "tasks[1].count.per_resource.type: \"gpu\" is not the type of a resource in slot \"b\""},
      {{"/tasks/1/count/per_resource/type", "\"switch\""},
       "tasks[1].count.per_resource.type: \"switch\" is not the type of a resource in slot \"b\""},
      {{"/tasks/1/count/per_resource/type", nullptr}, "tasks[1].count.per_resource.type: is missing"},
      {{"/tasks/1/count/per_resource/count", "0"}, "tasks[1].count.per_resource.count: must be at least 1"},
      {{"/tasks/0/distribution", "1"}, "tasks[0].distribution: must be a string"},
      {{"/tasks/0/attributes", "[]"}, "tasks[0].attributes: must be an object"},
      {{"/tasks/0/attributes/environment", "\"A=1\""}, "tasks[0].attributes.environment: must be an object"},
      {{"/tasks/0/attributes/environment/A", "1"},
       "tasks[0].attributes.environment.A: must be a string, or null to unset it"},
      {{"/attributes/system/environment", R"({"A":["1"]})"},
       "attributes.system.environment.A: must be a string, or null to unset it"},
      {{"/tasks/0/attributes/other", "1"}, "tasks[0].attributes.other: must be a string"},
      {{"/tasks/0/note", "1"}, "tasks[0].note: is not a key of a task"},
      {{"/attributes", nullptr}, "attributes: is missing"},
      {{"/attributes", "1"}, "attributes: must be an object"},
      {{"/attributes/extra", "{}"}, "attributes.extra: is not a key of attributes"},
      {{"/attributes/system/duration", "-1"}, "attributes.system.duration: must not be negative"},
      {{"/attributes/system/dependencies", "{}"}, "attributes.system.dependencies: must be an array"},
      {{"/attributes/system/dependencies/0", "1"}, "attributes.system.dependencies[0]: must be an object"},
      {{"/attributes/system/dependencies/0/scheme", nullptr},
       "attributes.system.dependencies[0].scheme: is missing"},
      {{"/attributes/system/dependencies/0/value", "1"},
       "attributes.system.dependencies[0].value: must be a string"},
  };
  CHECK(rows.size() > 60);
  for (const Row& row : rows) {
    const json jobspec = test::edited(canonical_base(), {row.edit});
    CAPTURE(std::string(row.edit.pointer));
    CAPTURE(jobspec.dump());
    const std::string error = canonical_verdict(jobspec);
    CHECK_MESSAGE(error.starts_with(row.error), error);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("a range without operator and operand has those of RFC 14: + and 1") {
  const auto graph = [](const char* count) {
    return resources_from_json(json::array({{{"type", "node"}, {"count", json::parse(count)}}}),
                               ExtraKeys::refused);
  };
  CHECK(graph(R"({"min":3,"max":30})") == graph(R"({"min":3,"max":30,"operator":"+","operand":1})"));
}

// Jobspecs that the prose of RFC 14 allows and its schema does not; tests/interop/jobspec_schema compares
// with another validator.
TEST_CASE("the schema refuses some of what the prose allows") {
  const auto by_schema = [](const json& jobspec) {
    return canonical_verdict(jobspec, CanonicalEdition::schema);
  };
  const char* dependency = R"([{"type":"in","scope":"user","scheme":"string","value":"foo"}])";
  const json base = test::edited(canonical_base(), {{"/attributes/system/dependencies", dependency}});
  CHECK(by_schema(base) == "valid");
  struct Row {
    Edit edit;
    const char* error;
  };
  const std::vector<Row> rows = {
      {{"/resources/0/count", R"({"min":2,"max":4})"}, "resources[0].count: max must come together with"},
      {{"/resources/0/count", R"({"min":2,"operator":"+","operand":3})"},
       "resources[0].count: max must come together with"},
      {{"/resources/0/count", R"("[3-30]")"}, "resources[0].count: \"[3-30]\" is an idset and a range"},
      {{"/resources/0/count", R"("7")"}, "resources[0].count: \"7\" is an idset and a range"},
      {{"/attributes/system/dependencies", "[]"}, "attributes.system.dependencies: must have at least one"},
      {{"/attributes/system/dependencies/0/type", nullptr},
       "attributes.system.dependencies[0].type: is missing"},
      {{"/attributes/system/dependencies/0/scope", nullptr},
       "attributes.system.dependencies[0].scope: is missing"},
      {{"/attributes/system/dependencies/0/scope", "\"all\""},
       "attributes.system.dependencies[0].scope: must be one of user, global"},
      {{"/attributes/system/dependencies/0/note", "1"},
       "attributes.system.dependencies[0].note: is not a key"},
      {{"/attributes/system/dependencies",
        R"([{"type":"in","scope":"user","scheme":"a","value":"b"},{"value":"b","type":"in","scope":"user","scheme":"a"}])"},
       "attributes.system.dependencies: must not have the same dependency twice"},
  };
  for (const Row& row : rows) {
    const json jobspec = test::edited(base, {row.edit});
    CAPTURE(jobspec.dump());
    const std::string error = by_schema(jobspec);
    CHECK_MESSAGE(error.starts_with(row.error), error);
    const bool in_prose = std::string(row.edit.pointer).starts_with("/resources");
    if (in_prose) CHECK(canonical_verdict(jobspec) == "valid");
  }
  // Where the prose is stricter than the schema, it applies to both editions.
  const json empty = test::edited(base, {{"/resources/1/with/0/with", "[]"}});
  CHECK(by_schema(empty).starts_with("resources[1].with[0].with: must have at least one vertex"));
}

TEST_CASE("a graph has a bounded number of levels") {
  const auto levels = [](std::size_t depth) {
    json list = json::array({{{"type", "core"}, {"count", 1}}});
    list = json::array({{{"type", "slot"}, {"count", 1}, {"label", "a"}, {"with", list}}});
    for (std::size_t i = 2; i < depth; ++i)
      list = json::array({{{"type", "a"}, {"count", 1}, {"with", list}}});
    return list;
  };
  json jobspec = canonical_base();
  jobspec["tasks"].erase(1);
  jobspec["resources"] = levels(max_graph_depth);
  CHECK(canonical_verdict(jobspec) == "valid");
  jobspec["resources"] = levels(max_graph_depth + 1);
  CHECK(canonical_verdict(jobspec).find("is more than 64 levels deep") != std::string::npos);
}
