// Reading and writing R (RFC 20): the RFC's example, canonical output, what is carried along, and hostile
// text.

#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced {
namespace {

using nlohmann::json;

std::string example() {
  std::ifstream file(RESOURCED_VECTORS "/spec_20/example1.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// An R whose execution section is this.
std::string document(const std::string& execution, const std::string& more = "") {
  return R"({"version":1,"execution":)" + execution + more + "}";
}

TEST_CASE("the example of RFC 20 is read as the RFC describes it, and comes back") {
  const ResourceSet set = ResourceSet::parse(example());
  CHECK(set.ranks() == IdSet::parse("19-22"));
  CHECK(set.nodelist().encode() == "node[186-189]");
  CHECK(set.counts() == ResourceCounts{4, 192, 32});
  CHECK(set.nslots() == 32);
  CHECK(set.starttime() == 1676560542);
  CHECK(set.expiration() == 1676562342);
  CHECK(set.host(20) == "node187");
  CHECK(set.rank_of("node189") == 22U);
  CHECK(set.rank_of("node190") == std::nullopt);

  const json expected = json::parse(example());
  CHECK(set.to_json() == expected);
  CHECK(json::parse(set.encode()) == expected);
  CHECK(ResourceSet::from_json(expected) == set);
  CHECK(ResourceSet::parse(set.encode()) == set);
}

TEST_CASE("an R without ranks is written as operators' tools expect it") {
  const json expected = json::parse(
      R"({"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[]}})");
  CHECK(ResourceSet().to_json() == expected);
  CHECK(json::parse(ResourceSet().encode()) == expected);
  CHECK(ResourceSet::from_json(expected) == ResourceSet());
}

TEST_CASE("equal children are merged, entries ordered by first rank, the nodelist is one hostlist") {
  const ResourceSet set = ResourceSet::parse(document(
      R"({"R_lite":[{"rank":"7","children":{"core":"0"}},
                    {"rank":"3,5","children":{"core":"0-1","gpu":"0"}},
                    {"rank":"[0-1]","children":{"core":"[0]"}},
                    {"rank":"6","children":{"gpu":"[0]","core":"0,1"}}],
          "nodelist":["n0","n1","n3","n5","n[6-7]"]})"));
  CHECK(set.encode() ==
        R"({"version":1,"execution":{"R_lite":[{"rank":"0-1,7","children":{"core":"0"}},)"
        R"({"rank":"3,5-6","children":{"core":"0-1","gpu":"0"}}],"nodelist":["n[0-1,3,5-7]"],)"
        R"("starttime":0.0,"expiration":0.0}})");
  CHECK(set.host(5) == "n5");
  CHECK(set.to_json() == json::parse(set.encode()));
}

}  // namespace
}  // namespace resourced
