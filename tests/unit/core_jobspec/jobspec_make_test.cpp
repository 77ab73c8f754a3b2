// Jobspecs made from shapes: version 1 if the graph allows it, canonical otherwise, and always valid.
#include <limits>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/jobspec/jobspec.hpp"
#include "core/jobspec/shape.hpp"
#include "jobspec_tools.hpp"
#include "vector_files.hpp"

using namespace resourced;
using namespace resourced::jobspec;
using nlohmann::json;

namespace {

const JobspecProgram program{.command = {"app", "-v"}, .duration = Seconds(60), .cwd = {}, .environment = {}};

std::string program_error(const std::string& shape, const JobspecProgram& with = program) {
  return test::verdict([&] { (void)make_jobspec(parse_shape(shape), with); });
}

}  // namespace

TEST_CASE("a graph of version 1 makes a jobspec of version 1") {
  JobspecProgram all = program;
  all.cwd = "/home";
  all.environment.emplace().emplace("HOME", "/home");
  CHECK(
      make_jobspec(parse_shape("node=4/slot=2{task}/[core=2;gpu]"), all).dump() ==
      R"({"version":1,"resources":[{"type":"node","count":4,"with":[{"type":"slot","count":2,"label":"task",)"
      R"("with":[{"type":"core","count":2},{"type":"gpu","count":1}]}]}],)"
      R"("tasks":[{"command":["app","-v"],"slot":"task","count":{"per_slot":1}}],)"
      R"("attributes":{"system":{"duration":60.0,"cwd":"/home","environment":{"HOME":"/home"}}}})");
  const json plain = make_jobspec(parse_shape("slot/core"), program);
  CHECK(plain["attributes"] == json::parse(R"({"system":{"duration":60.0}})"));
  CHECK(plain["tasks"][0]["slot"] == "default");
}

TEST_CASE("every use case of RFC 46 makes a canonical jobspec, with a task for each slot") {
  for (const json& use_case : json::parse(test::read_vector("shape/use_cases.json"))) {
    CAPTURE(use_case["use_case"]);
    const json jobspec = make_jobspec(parse_shape(use_case["shape"].get<std::string>()), program);
    CHECK_NOTHROW(check_canonical_jobspec(jobspec));
    // Use case 2.3, slot=10/core=2, is the only one that version 1 allows.
    const bool v1 = use_case["use_case"] == "2.3";
    CHECK(jobspec["version"] == (v1 ? 1 : 999));
    if (v1) CHECK_NOTHROW(check_jobspec_v1(jobspec, V1Edition::strict));
    CHECK(jobspec["resources"] == use_case["resources"]);
  }
  const json two = make_jobspec(parse_shape("[slot{a}/core;node/slot{b}/core]"), program);
  CHECK(two["tasks"].size() == 2);
  CHECK(two["tasks"][0]["slot"] == "a");
  CHECK(two["tasks"][1]["slot"] == "b");
}

TEST_CASE("what cannot be a jobspec is refused") {
  JobspecProgram none = program;
  none.command.clear();
  JobspecProgram negative = program;
  negative.duration = Seconds(-1);
  CHECK(program_error("node/core") == "resources: must have a slot to run the command in");
  CHECK(program_error("slot{a,k:1}/core") == "resources[0].k: is not a key of a resource vertex");
  CHECK(program_error("slot/core", none) == "tasks[0].command: must have at least one string");
  CHECK(program_error("slot/node", none) == "tasks[0].command: must have at least one string");
  JobspecProgram endless = program;
  endless.duration = forever;
  JobspecProgram bytes = program;
  bytes.command[1] = "\xff";
  JobspecProgram variable = program;
  variable.environment.emplace().emplace("A", "\xff");
  CHECK(program_error("slot/core", endless) ==
        "attributes.system.duration: must be finite: 0 is without limit");
  CHECK(program_error("slot/core", bytes) == "command[1]: \"\\xff\" is not UTF-8");
  CHECK(program_error("slot/core", variable) == "environment.A: \"\\xff\" is not UTF-8");
  CHECK(program_error("slot/core", negative) == "attributes.system.duration: must not be negative");
}
