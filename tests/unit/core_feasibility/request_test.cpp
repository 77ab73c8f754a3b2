// The request of a job, read from the text of a jobspec (RFC 14, RFC 25).
#include "core/feasibility/request.hpp"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/feasibility/feasibility.hpp"
#include "core/jobspec/shape.hpp"

namespace resourced::feasibility {
namespace {

const std::string two_cores = R"("resources":[{"type":"slot","count":2,"label":"task",
  "with":[{"type":"core","count":1}]}])";

rset::ResourceSet two_nodes() {
  rset::ResourceSet nodes({{text::IdSet{0, 1}, text::IdSet{0}, {}}}, text::Hostlist::parse("n[0-1]"));
  nodes.add_property("fast", text::IdSet{1});
  return nodes;
}

/// Returns the errno and the text of the error for a text that is refused.
std::pair<int, std::string> refusal(const std::string& text) {
  try {
    (void)parse_request(text);
  } catch (const Error& error) {
    return {error.errnum(), error.what()};
  }
  return {0, "was read"};
}

TEST_CASE("resources, constraint and duration are those of the jobspec") {
  const Request request = parse_request(R"({"version":1,)" + two_cores + R"(,"tasks":[],"attributes":{
    "system":{"duration":3600.5,"cwd":"/","constraints":{"properties":["fast"]}},"user":{}}})");
  CHECK(jobspec::print_shape(request.resources, {"task"}) == "slot=2/core");
  CHECK(request.constraint.match(two_nodes()) == text::IdSet{1});
  CHECK(request.duration == Seconds(3600.5));
  const Feasibility answer = check_feasibility(request.resources, request.constraint, two_nodes());
  CHECK(answer.verdict == Feasibility::Verdict::infeasible);
}

TEST_CASE("without attributes every target matches, and there is no time limit") {
  for (const char* attributes : {"", R"(,"attributes":{})", R"(,"attributes":{"system":{}})",
                                 R"(,"attributes":{"system":{"constraints":null,"duration":null}})"}) {
    CAPTURE(attributes);
    const Request request = parse_request("{" + two_cores + attributes + "}");
    CHECK(request.constraint.match(two_nodes()) == text::IdSet{0, 1});
    CHECK(request.duration == Seconds(0));
    CHECK(check_feasibility(request.resources, request.constraint, two_nodes()).feasible());
  }
}

TEST_CASE("the error names the place of what is wrong") {
  const auto with_system = [](const std::string& system) {
    return "{" + two_cores + R"(,"attributes":{"system":)" + system + "}}";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "jobspec: must be an object"},
      {"{}", "resources: is missing"},
      {R"({"resources":[{"type":"core","count":0}]})", "resources[0].count: must be at least 1"},
      {"{" + two_cores + R"(,"attributes":[]})", "attributes: must be an object"},
      {with_system("1"), "attributes.system: must be an object"},
      {with_system(R"({"constraints":[]})"), "attributes.system.constraints: must be an object"},
      {with_system(R"({"duration":"1h"})"),
       "attributes.system.duration: must be a number of seconds, 0 or more"},
      {with_system(R"({"duration":-1})"),
       "attributes.system.duration: must be a number of seconds, 0 or more"},
  };
  for (const auto& [text, why] : cases) {
    CAPTURE(text);
    CHECK(refusal(text) == std::pair(EINVAL, why));
  }
}

TEST_CASE("a text that is not JSON, or too long or nested too deep, is refused") {
  for (const std::string& text :
       {std::string(), std::string("{"), "{" + two_cores + "} x", "resources: []" + std::string(),
        R"({"resources":[],"resources":[]})" + std::string(),
        R"({"x":)" + std::string(max_jobspec_depth, '[') + std::string(max_jobspec_depth, ']') + "}"}) {
    CAPTURE(text);
    const auto [errnum, why] = refusal(text);
    CHECK(errnum == EINVAL);
    CHECK(why.starts_with("jobspec: cannot be read as JSON at byte "));
  }
  CHECK(refusal("{" + two_cores + "}" + std::string(max_jobspec_bytes, ' ')).first == EFBIG);
}

}  // namespace
}  // namespace resourced::feasibility
