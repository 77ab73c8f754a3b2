// The budget of a feasibility check: requests made to take long end when the budget is spent, in every part
// of the check.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/feasibility/feasibility.hpp"
#include "core/rset/builder.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::feasibility {

using constraint::Budget;
using rset::ResourceSet;
using text::IdSet;

namespace {

using Json = nlohmann::json;

/// Nodes of `kinds` different sizes in turn; every second node has the properties.
ResourceSet cluster(unsigned nodes, unsigned kinds) {
  rset::InventoryBuilder builder;
  for (unsigned kind = 0; kind < kinds; ++kind) {
    std::string hosts;
    for (unsigned i = kind; i < nodes; i += kinds) hosts += fmt::format("{}n{}", hosts.empty() ? "" : ",", i);
    builder.add(text::Hostlist::parse(hosts), IdSet::range(0, 40 + kind), IdSet::range(0, kind % 5), {});
  }
  ResourceSet set = builder.finish();
  IdSet odd;
  set.ranks().for_each([&](IdSet::Id rank) {
    if (rank % 2 == 1) odd.insert(rank);
  });
  set.add_property("odd", odd);
  return set;
}

Json request(Json resources, Json constraints = Json::object()) {
  return {{"resources", std::move(resources)},
          {"attributes", {{"system", {{"constraints", std::move(constraints)}}}}}};
}

Json node(std::uint64_t count) { return {{"type", "node"}, {"count", count}}; }

/// `different` kinds of slots, `count` of each.
Json slots(std::size_t different, std::uint64_t count) {
  Json list = Json::array();
  for (std::size_t i = 0; i < different; ++i) {
    list.push_back(
        {{"type", "slot"},
         {"count", count + i},
         {"label", std::to_string(i)},
         {"with", {{{"type", "core"}, {"count", 3 + i}}, {{"type", "gpu"}, {"count", 1 + i % 3}}}}});
  }
  return list;
}

Json nodes_of_cores(std::size_t different, std::uint64_t count) {
  Json list = Json::array();
  for (std::size_t i = 0; i < different; ++i) {
    list.push_back({{"type", "node"}, {"count", count}, {"with", {{{"type", "core"}, {"count", 1 + i}}}}});
  }
  return list;
}

struct Hostile {
  std::string what;
  Json jobspec;
};

std::vector<Hostile> hostile_requests() {
  std::vector<Hostile> all;
  all.push_back({"a million hosts", request({node(1)}, {{"hostlist", {"x[0-999999]"}}})});
  all.push_back({"hosts that there are, many times",
                 request({node(1)}, {{"hostlist", Json::array({"n[0-16383],n[0-16383],n[0-16383]"})}})});
  Json ranks = Json::array();
  std::string scattered;
  for (unsigned i = 0; i < 40000; ++i) scattered += fmt::format("{}{}", i == 0 ? "" : ",", i * 5000);
  ranks.push_back(scattered);
  for (unsigned i = 0; i < 60000; ++i) ranks.push_back(fmt::format("{}", 100 + i * 7));
  all.push_back({"ranks one by one", request({node(1)}, {{"ranks", ranks}})});
  Json names = Json::array();
  for (int i = 0; i < 4000; ++i) names.push_back(i % 2 == 0 ? "odd" : "^odd");
  all.push_back({"properties", request({node(1)}, {{"properties", names}})});
  Json terms = Json::array();
  for (int i = 0; i < 1300; ++i) terms.push_back(Json::parse(R"({"not": [{"properties": ["odd"]}]})"));
  all.push_back({"many terms", request({node(1)}, {{"or", terms}})});
  Json deep = node(1);
  Json with = Json::array();
  for (int i = 0; i < 8000; ++i) with.push_back({{"type", "core"}, {"count", 1}});
  for (int i = 0; i < 60; ++i) {
    with = Json::array({{{"type", "slot"}, {"count", 1}, {"label", std::to_string(i)}, {"with", with}}});
  }
  all.push_back({"slots in slots", request(with)});
  all.push_back({"many demands for nodes", request(nodes_of_cores(15000, 1))});
  all.push_back({"demands for nodes that hold each other up", request(nodes_of_cores(600, 27))});
  all.push_back({"slots that are hard to place", request(slots(12, 8000))});
  all.push_back({"more slots", request(slots(40, 900))});
  all.push_back({"most slots", request(slots(500, 60))});
  return all;
}

TEST_CASE("a budget ends any request") {
  constexpr std::uint64_t steps = 20'000'000;
  for (const unsigned kinds : {1U, 100U, 1000U}) {
    const ResourceSet inventory = cluster(16384, kinds);
    for (const Hostile& hostile : hostile_requests()) {
      CAPTURE(kinds);
      CAPTURE(hostile.what);
      Budget budget(steps);
      try {
        (void)check_jobspec_feasibility(hostile.jobspec, inventory, budget);
      } catch (const Error& error) {
        CHECK((error.errnum() == ETIMEDOUT || error.errnum() == EINVAL || error.errnum() == ERANGE));
      }
      CHECK(budget.spent() <= steps);
    }
  }
}

TEST_CASE("a budget that is spent stops at that step, and says how many there were") {
  Budget budget(10);
  budget.spend(4);
  CHECK(budget.spent() == 4);
  budget.spend(6);
  CHECK_THROWS_WITH_AS(budget.spend(1), "checking the request takes more than 10 steps", Error);
  CHECK(budget.spent() == 10);
  const ResourceSet inventory = cluster(16, 2);
  const Json jobspec = request(nodes_of_cores(3, 1));
  Budget enough;
  CHECK(check_jobspec_feasibility(jobspec, inventory, enough).feasible());
  Budget exact(enough.spent());
  CHECK(check_jobspec_feasibility(jobspec, inventory, exact).feasible());
  Budget less(enough.spent() - 1);
  try {
    (void)check_jobspec_feasibility(jobspec, inventory, less);
    FAIL("it was judged");
  } catch (const Error& error) {
    CHECK(error.errnum() == ETIMEDOUT);
  }
}

}  // namespace
}  // namespace resourced::feasibility
