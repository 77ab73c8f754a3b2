// Reading and writing R (RFC 20): the RFC's example, canonical output, preserved keys, and hostile text.

#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::rset {

using text::IdSet;

namespace {

using nlohmann::json;

std::string example() {
  std::ifstream file(RESOURCED_VECTORS "/spec_20/example1.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// An R with this execution section.
std::string document(const std::string& execution, const std::string& more = "") {
  return R"({"version":1,"execution":)" + execution + more + "}";
}

TEST_CASE("the example of RFC 20 is read as the RFC describes it, and comes back") {
  const ResourceSet set = ResourceSet::parse(example());
  CHECK(set.ranks() == IdSet::parse("19-22"));
  CHECK(set.nodelist().encode() == "node[186-189]");
  CHECK(set.counts() == ResourceCounts{4, 192, 32});
  CHECK(set.nslots() == 32);
  CHECK(set.starttime() == wall_time(1676560542));
  CHECK(set.expiration() == wall_time(1676562342));
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

TEST_CASE("one rank in several entries has the sum of what they give it") {
  const ResourceSet set = ResourceSet::parse(document(
      R"({"R_lite":[{"rank":"0-9","children":{"core":"0-3"}},
                    {"rank":"4-5","children":{"core":"4","gpu":"0-1"}},
                    {"rank":"5","children":{"core":"5"}}],
          "nodelist":["n[0-9]"]})"));
  REQUIRE(set.groups().size() == 3);
  CHECK(set.groups()[0].ranks == IdSet::parse("0-3,6-9"));
  CHECK(set.groups()[0].gpus.empty());
  CHECK(set.groups()[1].ranks == IdSet{4});
  CHECK(set.groups()[1].cores == IdSet::parse("0-4"));
  CHECK(set.groups()[1].gpus == IdSet::parse("0-1"));
  CHECK(set.groups()[2].cores == IdSet::parse("0-5"));
  CHECK(set.counts() == ResourceCounts{10, 43, 4});
}

TEST_CASE("gpus without cores are not written, as no reader would take them") {
  const ResourceSet node = ResourceSet::parse(
      document(R"({"R_lite":[{"rank":"3","children":{"core":"0-1","gpu":"0"}}],"nodelist":["a"]})"));
  const ResourceSet cores =
      ResourceSet::parse(document(R"({"R_lite":[{"rank":"3","children":{"core":"0-1"}}],"nodelist":["a"]})"));
  const ResourceSet gpus = diff(node, cores);
  CHECK(gpus.counts() == ResourceCounts{1, 0, 1});
  CHECK_THROWS_WITH_AS(static_cast<void>(gpus.encode()),
                       "rank 3 has gpus but no cores: an R has a core for each rank (RFC 20)", Error);
  CHECK_THROWS_WITH_AS(static_cast<void>(gpus.to_json()),
                       "rank 3 has gpus but no cores: an R has a core for each rank (RFC 20)", Error);
}

TEST_CASE("keys that RFC 20 does not know are kept at every level") {
  const json given = json::parse(document(
      R"({"R_lite":[{"rank":"0","children":{"core":"0","fpga":"1"},"x":[1]},
                    {"rank":"1","children":{"core":"0","fpga":"1"},"x":[1]},
                    {"rank":"2","children":{"core":"0"}}],
          "nodelist":["a0","a1","a2"],"y":{"rank":"3-1"}})",
      R"(,"z":null,"attributes":{"system":{"scheduler":{"queue":"batch"}},"q":1},
         "scheduling":{"graph":{"nodes":[],"edges":[]},"n":12345678901234567890})"));
  json expected = given;
  expected["execution"]["R_lite"] = json::parse(
      R"([{"rank":"0-1","children":{"core":"0","fpga":"1"},"x":[1]},{"rank":"2","children":{"core":"0"}}])");
  expected["execution"]["nodelist"] = {"a[0-2]"};
  expected["execution"]["starttime"] = 0.0;
  expected["execution"]["expiration"] = 0.0;
  for (const ResourceSet& set : {ResourceSet::from_json(given), ResourceSet::parse(given.dump())}) {
    CHECK(set.to_json() == expected);
    CHECK(json::parse(set.encode()) == expected);
    json bare = expected;
    bare.erase("scheduling");
    CHECK(set.to_json(false) == bare);
    CHECK(json::parse(set.encode(false)) == bare);
  }
}

TEST_CASE("keys come in the order in which RFC 20 lists them") {
  ResourceSet set = ResourceSet::parse(document(
      R"({"properties":{"b":"1","a":"0"},"nslots":2,"R_lite":[{"rank":"0-1","children":{"core":"0"}}],
          "expiration":2.5,"nodelist":["n[0-1]"],"starttime":1})",
      R"(,"attributes":{},"scheduling":{"s":1})"));
  CHECK(set.encode() == R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],)"
                        R"("nodelist":["n[0-1]"],"nslots":2,"properties":{"a":"0","b":"1"},)"
                        R"("starttime":1.0,"expiration":2.5},"scheduling":{"s":1},"attributes":{}})");
}

TEST_CASE("times keep their microseconds") {
  const json given = json::parse(document(
      R"({"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["a"],
          "starttime":1676560542.123456,"expiration":1676562342.654321})"));
  const ResourceSet set = ResourceSet::from_json(given);
  CHECK(set.starttime() == wall_time(1676560542.123456));
  CHECK(set.to_json() == given);
  CHECK(json::parse(set.encode()) == given);
  CHECK(ResourceSet::parse(set.encode()) == set);
}

TEST_CASE("names that JSON has to escape come back as they were") {
  const json given = json::parse(document(
      R"({"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["a\"b\\"],
          "properties":{"caf\u00e9\\":"0"},"starttime":0,"expiration":0})"));
  const ResourceSet set = ResourceSet::from_json(given);
  CHECK(set.host(0) == "a\"b\\");
  CHECK(json::parse(set.encode()) == given);
  CHECK(set.to_json() == given);
}

}  // namespace
}  // namespace resourced::rset
