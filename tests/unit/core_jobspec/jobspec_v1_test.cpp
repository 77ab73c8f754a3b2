// Jobspec version 1 (RFC 25): the examples of the RFC, and the errors by its text and schema.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/document/document.hpp"
#include "core/jobspec/jobspec.hpp"
#include "core/jobspec/shape.hpp"
#include "jobspec_tools.hpp"
#include "vector_files.hpp"

using namespace resourced;
using namespace resourced::jobspec;
using nlohmann::json;
using resourced::document::read_document;
using test::Edit;

namespace {

std::string v1_verdict(const json& jobspec, V1Edition edition = V1Edition::lenient) {
  return test::verdict([&] { check_jobspec_v1(jobspec, edition); });
}

// The jobspec of node=4/slot=2/[core=2;gpu].
json v1_base() {
  return json::parse(R"({
    "version": 1,
    "resources": [{"type": "node", "count": 4, "with": [
      {"type": "slot", "count": 2, "label": "task", "with": [
        {"type": "core", "count": 2}, {"type": "gpu", "count": 1}]}]}],
    "tasks": [{"command": ["app"], "slot": "task", "count": {"per_slot": 1}}],
    "attributes": {"system": {"duration": 3600.0, "cwd": "/home", "environment": {"HOME": "/home"}},
                   "user": {"any": 1}}})");
}

}  // namespace

TEST_CASE("every example of RFC 25 is valid, and all but use case 2.1 in the present edition") {
  const std::vector<std::string> names = test::list_vectors("spec_25", ".yaml");
  CHECK(names.size() == 6);
  for (const std::string& name : names) {
    CAPTURE(name);
    const json jobspec = read_document(test::read_vector(name));
    CHECK(v1_verdict(jobspec) == "valid");
    // The same jobspec as JSON text.
    CHECK(v1_verdict(read_document(jobspec.dump())) == "valid");
    CHECK(v1_verdict(jobspec, V1Edition::strict) ==
          (name == "spec_25/use_case_2.1.yaml"
               ? "tasks[0].count.total: must be at most 4, the number of slots"
               : "valid"));
  }
}

TEST_CASE("no use case of RFC 14 is of version 1") {
  for (const std::string& name : test::list_vectors("spec_14", ".yaml")) {
    CAPTURE(name);
    const bool example = name == "spec_14/example1.yaml";
    CHECK((v1_verdict(read_document(test::read_vector(name))) == "valid") == example);
  }
}

TEST_CASE("what is allowed") {
  const std::vector<std::vector<Edit>> changes = {
      {},
      {{"/attributes/user", nullptr}},
      {{"/attributes/system/duration", "0"}},
      {{"/attributes/system/cwd", nullptr}},
      {{"/attributes/system/environment", nullptr}},
      {{"/attributes/system/environment", "{\"A\":null}"}},
      {{"/attributes/system/queue", "\"batch\""}},
      {{"/attributes/system/dependencies", "[]"}},
      {{"/attributes/system/preemptible-after", "60"}},
      {{"/attributes/system/constraints", "{}"}},
      {{"/attributes/system/constraints",
        R"({"and":[{"properties":["a","^b"]},{"not":[{"ranks":["0-3"]}]}]})"}},
      {{"/tasks/0/command", "\"app\""}},
      {{"/tasks/0/command", "[\"app\",\"\"]"}},
      {{"/tasks/0/count", "{\"total\":8}"}},
      {{"/tasks/0/count", "{\"per_slot\":7}"}},
      {{"/resources/0/unit", "\"u\""}},
      {{"/resources/0/exclusive", "true"}},
      {{"/resources/0/with/0/exclusive", "false"}},
      {{"/resources/0/with/0/unit", "\"u\""}},
      {{"/resources/0/with/0/with/0/unit", "\"u\""}},
      {{"/resources/0/with/0/with/1", nullptr}},
      {{"/resources/0/count", "18446744073709551615"}},
      {{"/resources/0", R"({"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]})"}},
      {{"/resources/0/with/0/with", R"([{"type":"gpu","count":1},{"type":"core","count":1}])"}},
      {{"/resources/0/with/0/label", "\"\""}, {"/tasks/0/slot", "\"\""}},
      {{"/note", "\"a key of its own\""}},
  };
  for (const auto& edits : changes) {
    json jobspec = v1_base();
    for (const Edit& edit : edits) jobspec = test::edited(jobspec, {edit});
    CAPTURE(jobspec.dump());
    CHECK(v1_verdict(jobspec) == "valid");
  }
}

TEST_CASE("what is refused, with its path and the reason") {
  struct Row {
    Edit edit;
    const char* error;
  };
  const std::vector<Row> rows = {
      {{"", "[]"}, "jobspec: must be an object"},
      {{"", "null"}, "jobspec: must be an object"},
      {{"", "\"version: 1\""}, "jobspec: must be an object"},
      {{"/version", nullptr}, "version: is missing"},
      {{"/version", "true"}, "version: must be the number 1"},
      {{"/version", "\"1\""}, "version: must be the number 1"},
      {{"/version", "1.5"}, "version: must be the number 1"},
      {{"/version", "2"}, "version: must be the number 1"},
      {{"/version", "999"}, "version: must be the number 1"},
      {{"/version", "0"}, "version: must be the number 1"},
      {{"/version", "null"}, "version: must be the number 1"},
      {{"/resources", nullptr}, "resources: is missing"},
      {{"/resources", "{}"}, "resources: must be an array"},
      {{"/resources", "null"}, "resources: must be an array"},
      {{"/resources", "[]"}, "resources: must have exactly one vertex"},
      {{"/resources/1", R"({"type":"slot"})"}, "resources: must have exactly one vertex"},
      {{"/resources/0", "\"node\""}, "resources[0]: must be an object"},
      {{"/resources/0/type", nullptr}, "resources[0].type: is missing"},
      {{"/resources/0/type", "1"}, "resources[0].type: must be a string"},
      {{"/resources/0/type", "\"core\""}, "resources[0].type: must be node or slot, not \"core\""},
      {{"/resources/0/type", "\"socket\""}, "resources[0].type: must be node or slot, not \"socket\""},
      {{"/resources/0/count", nullptr}, "resources[0].count: is missing"},
      {{"/resources/0/count", "0"}, "resources[0].count: must be at least 1"},
      {{"/resources/0/count", "-1"}, "resources[0].count: must be at least 1"},
      {{"/resources/0/count", "1.0"}, "resources[0].count: must be an integer"},
      {{"/resources/0/count", "true"}, "resources[0].count: must be an integer"},
      {{"/resources/0/count", "\"4\""}, "resources[0].count: must be an integer"},
      {{"/resources/0/count", "{\"min\":1}"}, "resources[0].count: must be an integer"},
      {{"/resources/0/count", "null"}, "resources[0].count: must be an integer"},
      {{"/resources/0/label", "\"a\""}, "resources[0].label: is not a key of a node"},
      {{"/resources/0/id", "\"a\""}, "resources[0].id: is not a key of a node"},
      {{"/resources/0/unit", "1"}, "resources[0].unit: must be a string"},
      {{"/resources/0/exclusive", "1"}, "resources[0].exclusive: must be true or false"},
      {{"/resources/0/with", nullptr}, "resources[0].with: is missing"},
      {{"/resources/0/with", "{}"}, "resources[0].with: must be an array"},
      {{"/resources/0/with", "[]"}, "resources[0].with: must have exactly one slot"},
      {{"/resources/0/with/1", "{}"}, "resources[0].with: must have exactly one slot"},
      {{"/resources/0/with/0", "1"}, "resources[0].with[0]: must be an object"},
      {{"/resources/0/with/0/type", "\"core\""}, "resources[0].with[0].type: must be slot, not \"core\""},
      {{"/resources/0/with/0/type", "\"node\""}, "resources[0].with[0].type: must be slot, not \"node\""},
      {{"/resources/0/with/0/count", "0"}, "resources[0].with[0].count: must be at least 1"},
      {{"/resources/0/with/0/count", nullptr}, "resources[0].with[0].count: is missing"},
      {{"/resources/0/with/0/label", nullptr}, "resources[0].with[0].label: is missing"},
      {{"/resources/0/with/0/label", "5"}, "resources[0].with[0].label: must be a string"},
      {{"/resources/0/with/0/extra", "5"}, "resources[0].with[0].extra: is not a key of a slot"},
      {{"/resources/0/with/0/exclusive", "\"yes\""}, "resources[0].with[0].exclusive: must be true or false"},
      {{"/resources/0/with/0/with", nullptr}, "resources[0].with[0].with: is missing"},
      {{"/resources/0/with/0/with", "1"}, "resources[0].with[0].with: must be an array"},
      {{"/resources/0/with/0/with", "[]"}, "resources[0].with[0].with: must have a core"},
      {{"/resources/0/with/0/with/0", nullptr}, "resources[0].with[0].with: must have a core"},
      {{"/resources/0/with/0/with/1/type", "\"core\""},
       "resources[0].with[0].with: must have the type core once"},
      {{"/resources/0/with/0/with/2", R"({"type":"gpu","count":1})"},
       "resources[0].with[0].with: must have the type gpu once"},
      {{"/resources/0/with/0/with/0/type", "\"memory\""},
       "resources[0].with[0].with[0].type: must be core or gpu, not \"memory\""},
      {{"/resources/0/with/0/with/0/type", "\"node\""},
       "resources[0].with[0].with[0].type: must be core or gpu, not \"node\""},
      {{"/resources/0/with/0/with/0/count", "0"}, "resources[0].with[0].with[0].count: must be at least 1"},
      {{"/resources/0/with/0/with/1/count", "\"2+\""},
       "resources[0].with[0].with[1].count: must be an integer"},
      {{"/resources/0/with/0/with/0/with", "[]"},
       "resources[0].with[0].with[0].with: is not a key of a core"},
      {{"/resources/0/with/0/with/0/exclusive", "true"},
       "resources[0].with[0].with[0].exclusive: is not a key of a core"},
      {{"/resources/0/with/0/with/1/label", "\"a\""},
       "resources[0].with[0].with[1].label: is not a key of a gpu"},
      {{"/tasks", nullptr}, "tasks: is missing"},
      {{"/tasks", "{}"}, "tasks: must be an array"},
      {{"/tasks", "[]"}, "tasks: must have exactly one task"},
      {{"/tasks/1", "{}"}, "tasks: must have exactly one task"},
      {{"/tasks/0", "[]"}, "tasks[0]: must be an object"},
      {{"/tasks/0/command", nullptr}, "tasks[0].command: is missing"},
      {{"/tasks/0/command", "[]"}, "tasks[0].command: must have at least one string"},
      {{"/tasks/0/command", "{}"}, "tasks[0].command: must be an array of strings, or a string"},
      {{"/tasks/0/command", "[\"a\",1]"}, "tasks[0].command[1]: must be a string"},
      {{"/tasks/0/slot", nullptr}, "tasks[0].slot: is missing"},
      {{"/tasks/0/slot", "1"}, "tasks[0].slot: must be a string"},
      {{"/tasks/0/slot", "\"other\""}, "tasks[0].slot: must be the label of the slot, \"task\""},
      {{"/tasks/0/count", nullptr}, "tasks[0].count: is missing"},
      {{"/tasks/0/count", "1"}, "tasks[0].count: must be an object"},
      {{"/tasks/0/count", "{}"}, "tasks[0].count: must have either per_slot or total"},
      {{"/tasks/0/count/total", "1"}, "tasks[0].count: must have either per_slot or total"},
      {{"/tasks/0/count", R"({"per_resource":{"type":"node","count":1}})"},
       "tasks[0].count.per_resource: is not a key of a task count"},
      {{"/tasks/0/count/per_slot", "0"}, "tasks[0].count.per_slot: must be at least 1"},
      {{"/tasks/0/count/per_slot", "1.5"}, "tasks[0].count.per_slot: must be an integer"},
      {{"/tasks/0/count", "{\"total\":0}"}, "tasks[0].count.total: must be at least 1"},
      {{"/tasks/0/count", "{\"total\":\"5\"}"}, "tasks[0].count.total: must be an integer"},
      {{"/tasks/0/distribution", "\"a\""}, "tasks[0].distribution: is not a key of a task"},
      {{"/tasks/0/attributes", "{}"}, "tasks[0].attributes: is not a key of a task"},
      {{"/attributes", nullptr}, "attributes: is missing"},
      {{"/attributes", "null"}, "attributes: must be an object"},
      {{"/attributes", "[]"}, "attributes: must be an object"},
      {{"/attributes/other", "{}"}, "attributes.other: is not a key of attributes"},
      {{"/attributes/user", "1"}, "attributes.user: must be an object"},
      {{"/attributes/system", nullptr}, "attributes.system: is missing"},
      {{"/attributes/system", "null"}, "attributes.system: must be an object"},
      {{"/attributes/system/duration", nullptr}, "attributes.system.duration: is missing"},
      {{"/attributes/system/duration", "-0.5"}, "attributes.system.duration: must not be negative"},
      {{"/attributes/system/duration", "\"1h\""}, "attributes.system.duration: must be a number of seconds"},
      {{"/attributes/system/duration", "true"}, "attributes.system.duration: must be a number of seconds"},
      {{"/attributes/system/duration", "null"}, "attributes.system.duration: must be a number of seconds"},
      {{"/attributes/system/cwd", "1"}, "attributes.system.cwd: must be a string"},
      {{"/attributes/system/environment", "[]"}, "attributes.system.environment: must be an object"},
      {{"/attributes/system/environment", "\"A=1\""}, "attributes.system.environment: must be an object"},
      {{"/attributes/system/constraints", "[]"}, "attributes.system.constraints: "},
      {{"/attributes/system/constraints", "null"}, "attributes.system.constraints: "},
      {{"/attributes/system/constraints", R"({"near":["a"]})"}, "attributes.system.constraints"},
      {{"/attributes/system/constraints", R"({"and":[{"properties":[1]}]})"},
       "attributes.system.constraints.and[0].properties[0]: must be a string"},
      {{"/attributes/system/constraints", R"({"ranks":["3-1"]})"},
       "attributes.system.constraints.ranks[0]: "},
      {{"/attributes/system/constraints", R"({"hostlist":["a["]})"},
       "attributes.system.constraints.hostlist[0]: "},
  };
  CHECK(rows.size() > 90);
  for (const Row& row : rows) {
    const json jobspec = test::edited(v1_base(), {row.edit});
    CAPTURE(std::string(row.edit.pointer));
    CAPTURE(jobspec.dump());
    const std::string error = v1_verdict(jobspec);
    CHECK_MESSAGE(error.starts_with(row.error), error);
    CHECK(error.find('\n') == std::string::npos);
    CHECK(v1_verdict(jobspec, V1Edition::strict) == error);
  }
}

TEST_CASE("the present edition limits the number of tasks") {
  struct Row {
    const char* count;
    const char* error;
  };
  // Numbers of tasks for four nodes with eight slots.
  const std::vector<Row> rows = {
      {R"({"per_slot":1})", "valid"},
      {R"({"per_slot":2})", "tasks[0].count.per_slot: must be 1"},
      {R"({"total":3})", "tasks[0].count.total: must be at least 4, the number of nodes"},
      {R"({"total":4})", "valid"},
      {R"({"total":8})", "valid"},
      {R"({"total":9})", "tasks[0].count.total: must be at most 8, the number of slots"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.count));
    const json jobspec = test::edited(v1_base(), {{"/tasks/0/count", row.count}});
    CHECK(v1_verdict(jobspec) == "valid");
    CHECK(v1_verdict(jobspec, V1Edition::strict) == row.error);
  }
  SUBCASE("without nodes one task is enough") {
    const json jobspec = test::edited(
        v1_base(),
        {{"/resources/0", R"({"type":"slot","count":9,"label":"task","with":[{"type":"core","count":1}]})"},
         {"/tasks/0/count", R"({"total":1})"}});
    CHECK(v1_verdict(jobspec, V1Edition::strict) == "valid");
  }
  SUBCASE("more slots than 64 bits hold") {
    const json jobspec = test::edited(v1_base(), {{"/resources/0/count", "9223372036854775808"},
                                                  {"/tasks/0/count", R"({"total":18446744073709551615})"}});
    CHECK(v1_verdict(jobspec, V1Edition::strict) == "valid");
  }
}

TEST_CASE("which shapes are graphs of version 1") {
  for (const char* shape : {"slot/core", "node/slot/core", "slot/[core;gpu]", "slot/[gpu;core]",
                            "node=2/slot=3{a}/[core=4;gpu=5]", "node{x}/slot/core",
                            "slot{a,x,unit:u}/core{unit:u}", "node{unit:u}/slot/core"}) {
    CAPTURE(std::string(shape));
    CHECK(is_v1_graph(parse_shape(shape)));
  }
  for (const char* shape : {"node",
                            "core",
                            "node/core",
                            "slot/node",
                            "slot/gpu",
                            "slot/[core;core]",
                            "slot/[core;gpu;gpu]",
                            "slot/[core;memory]",
                            "[slot{a}/core;slot{b}/core]",
                            "node/[slot{a}/core;slot{b}/core]",
                            "slot=2+/core",
                            "slot=1,2/core",
                            "slot/core=2-3",
                            "node/node/slot/core",
                            "slot{a}/slot{b}/core",
                            "slot/core{x}",
                            "slot/core{label:l}",
                            "slot/core/gpu",
                            "node{label:l}/slot/core",
                            "node{id:i}/slot/core",
                            "slot{a,k:1}/core",
                            "socket/slot/core",
                            "node/slot/core{k:1}"}) {
    CAPTURE(std::string(shape));
    CHECK_FALSE(is_v1_graph(parse_shape(shape)));
  }
}

TEST_CASE("RFC 25: an attribute may have any type of YAML") {
  const json jobspec = document::read_document(R"(
version: 1
resources: [{type: slot, count: 1, label: task, with: [&core {type: core, count: 1}]}]
tasks: [{command: [app], slot: task, count: {per_slot: 1}}]
attributes:
  system:
    duration: 60
    environment: &environment {HOME: /home/a, PATH: /bin}
  user:
    infinite: .inf
    large: 123456789012345678901234567890
    picture: !!binary aGk=
    written: !!timestamp 2001-12-14
    names: !!set {a, b}
    again: *environment
    merged: {<<: *environment, PATH: /usr/bin}
    core: *core
)");
  CHECK_NOTHROW(check_jobspec_v1(jobspec));
  const json& user = jobspec["attributes"]["user"];
  CHECK(user["infinite"] == std::numeric_limits<double>::infinity());
  CHECK(user["large"] == 123456789012345678901234567890.0);
  CHECK(user["picture"] == "aGk=");
  CHECK(user["written"] == "2001-12-14");
  CHECK(user["names"] == json{{"a", nullptr}, {"b", nullptr}});
  CHECK(user["again"] == json{{"HOME", "/home/a"}, {"PATH", "/bin"}});
  CHECK(user["merged"] == json{{"HOME", "/home/a"}, {"PATH", "/usr/bin"}});
  CHECK(user["core"] == json{{"type", "core"}, {"count", 1}});
}
