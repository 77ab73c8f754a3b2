// Feasibility (RFC 27): the answers of the daemon, and of resourcectl with and without a daemon.
#include <string>

#include <doctest/doctest.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// Eight nodes of four cores, the first four with two gpus, and an excluded one of sixteen cores.
constexpr std::string_view mixed = R"([resource]
exclude = "big"
[[resource.config]]
hosts = "test[0-7],big"
cores = "0-3"
[[resource.config]]
hosts = "test[0-3]"
gpus = "0-1"
properties = ["gpu"]
[[resource.config]]
hosts = "big"
cores = "4-15"
)";

json jobspec(const char* resources, const json& constraints = nullptr) {
  json request = {{"version", 1},
                  {"resources", json::parse(resources)},
                  {"tasks", json::array()},
                  {"attributes", {{"system", {{"duration", 0}}}}}};
  if (!constraints.is_null()) request["attributes"]["system"]["constraints"] = constraints;
  return {{"jobspec", request}};
}

TEST_SUITE_BEGIN("operator");

TEST_CASE("feasibility.check judges what could ever be: down counts, excluded does not") {
  Cluster cluster(mixed);
  const auto check = [&](const json& payload) {
    const RawResponse response = cluster.operator_client.call("feasibility.check", payload);
    if (response.errnum != 0) CHECK(response.errnum == wire_errno::inval);
    return response.errnum == 0 ? response.payload : response.text();
  };
  for (const bool drained : {false, true}) {
    CAPTURE(drained);
    if (drained) cluster.drain("0-7");
    CHECK(check(jobspec(R"([{"type":"node","count":8}])")) == "");
    CHECK(check(jobspec(R"([{"type":"node","count":9}])")) == "needs 9 nodes, the inventory has 8");
    CHECK(check(jobspec(R"([{"type":"slot","count":4,"label":"a","with":[{"type":"gpu","count":2}]}])")) ==
          "");
    CHECK(check(jobspec(R"([{"type":"node","count":5,"with":[
            {"type":"slot","count":1,"label":"a","with":[{"type":"gpu","count":2}]}]}])")) ==
          "needs 5 nodes with 2 gpus, the inventory has 4");
    // The only node with that many cores is excluded.
    CHECK(check(jobspec(R"([{"type":"slot","count":1,"label":"a","with":[{"type":"core","count":5}]}])")) ==
          "needs 1 slot with 5 cores in one node, the inventory has room for 0");
    CHECK(check(jobspec(R"([{"type":"node","count":5}])", {{"properties", {"gpu"}}})) ==
          "needs 5 nodes, the matching part of the inventory has 4");
    CHECK(check(jobspec(R"([{"type":"memory","count":4}])")) ==
          "cannot check the type memory: R has only nodes, cores and gpus");
  }
  CHECK(check(jobspec(R"([{"type":"node"}])")) == "resources[0].count: is missing");
  CHECK(cluster.operator_client.call("feasibility.check", {{"jobspec", 1}}).errnum == wire_errno::proto);
}

TEST_CASE("resourcectl feasibility says the same with a daemon and without one") {
  Cluster cluster(mixed);
  cluster.drain("1");
  const std::string file = cluster.dir.write("R.json", cluster.ctl.output({"R", "show"}));
  for (const bool with_daemon : {true, false}) {
    CAPTURE(with_daemon);
    const auto ask = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "feasibility");
      if (!with_daemon) arguments.insert(arguments.end(), {"--R", file});
      return cluster.ctl.run(arguments);
    };
    CHECK(ask({"node=8/slot/core=4"}).out == "feasible\n");
    CHECK(ask({"node=4", "--constraint", "gpu"}).out == "feasible\n");
    const Outcome refused = ask({"node=9/slot=2/gpu"});
    CHECK(refused.status == 1);
    CHECK(refused.out.empty());
    CHECK(refused.err == "resourcectl: needs 9 nodes with 2 gpus, the inventory has 4\n");
    CHECK(ask({"node=5", "--constraint", "gpu"}).status == 1);
    CHECK(ask({"slot/"}).status == 1);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
