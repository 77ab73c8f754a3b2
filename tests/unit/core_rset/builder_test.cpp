// The inventory from [[resource.config]] entries: ranks in the order of first mention, and later entries add
// resources.

#include "core/rset/builder.hpp"

#include <random>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/rset/short_form.hpp"
#include "model.hpp"

namespace resourced::rset {

using text::Hostlist;
using text::IdSet;

namespace {

struct Config {
  std::string hosts;
  std::string cores;
  std::string gpus;
  std::vector<std::string> properties;
};

ResourceSet build(const std::vector<Config>& entries) {
  InventoryBuilder builder;
  for (const Config& entry : entries)
    builder.add(Hostlist::parse(entry.hosts), IdSet::parse(entry.cores), IdSet::parse(entry.gpus),
                entry.properties);
  return builder.finish();
}

TEST_CASE("one entry for many hosts") {
  const ResourceSet set = build({{"test[1-100]", "0-7", "", {}}});
  CHECK(short_form(set) == "rank[0-99]/core[0-7]");
  CHECK(set.nodelist().encode() == "test[1-100]");
}

TEST_CASE("later entries add cores, gpus and properties to hosts that are known") {
  const ResourceSet set = build({{"n[0-3]", "0-3", "", {"a"}},
                                 {"n[2-5]", "2-5", "0", {"b"}},
                                 {"n[0-3]", "", "1", {"a", "c"}},
                                 {"n5", "", "", {"c"}}});
  CHECK(set.nodelist().encode() == "n[0-5]");
  CHECK(short_form(set) == "rank[0-1]/core[0-3],gpu1 rank[2-3]/core[0-5],gpu[0-1] rank[4-5]/core[2-5],gpu0");
  CHECK(set.properties() == ResourceSet::Properties{{"a", IdSet::parse("0-3")},
                                                    {"b", IdSet::parse("2-5")},
                                                    {"c", IdSet::parse("0-3,5")}});
}

TEST_CASE("ranks follow the order of first mention, also within an entry") {
  const ResourceSet set = build({{"c,a,c", "0", "", {}}, {"b,a,d", "1", "", {}}, {"a", "", "0", {}}});
  CHECK(set.nodelist().encode() == "c,a,b,d");
  CHECK(short_form(set) == "rank0/core0 rank1/core[0-1],gpu0 rank[2-3]/core1");
}

TEST_CASE("an entry may give properties alone, before or after the resources") {
  const ResourceSet set = build({{"n[0-1]", "", "", {"p"}}, {"n[0-1]", "0", "", {}}});
  CHECK(short_form(set) == "rank[0-1]/core0");
  CHECK(set.properties() == ResourceSet::Properties{{"p", IdSet::parse("0-1")}});
}

TEST_CASE("RFC 20: a host without cores is named, whether it has gpus or not") {
  CHECK_THROWS_WITH_AS(build({{"n[0-3]", "0", "", {}}, {"m[0-3]", "", "", {"p"}}, {"m[0-1]", "0", "0", {}}}),
                       "host m2 has no cores", Error);
  CHECK_THROWS_WITH_AS(build({{"n[0-3]", "0", "", {}}, {"m0", "", "0", {}}}), "host m0 has no cores", Error);
}

TEST_CASE("entries that are not valid are refused") {
  InventoryBuilder builder;
  CHECK_THROWS_WITH_AS(builder.add(Hostlist(), IdSet{0}, {}, {}), "hosts is empty", Error);
  CHECK_THROWS_AS(builder.add(Hostlist::parse("a"), IdSet{0}, {}, {"a!"}), Error);
  CHECK(builder.finish().empty());
}

TEST_CASE("many entries agree with a naive model") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    test::Model model;
    std::map<std::string, IdSet::Id> ranks;
    InventoryBuilder builder;
    for (std::size_t entries = 1 + random() % 8; entries > 0; --entries) {
      Hostlist hosts;
      const test::Ids cores = test::some_of({0, 1, 2, 3}, random);
      const test::Ids gpus = test::some_of({0, 1}, random);
      const std::string property = "p" + std::to_string(random() % 3);
      for (std::size_t count = 1 + random() % 12; count > 0; --count) {
        const std::string host = "n" + std::to_string(random() % 20);
        hosts.append(host);
        const auto rank = ranks.try_emplace(host, static_cast<IdSet::Id>(ranks.size())).first->second;
        test::Node& node = model[rank];
        node.host = host;
        node.cores.insert(cores.begin(), cores.end());
        node.gpus.insert(gpus.begin(), gpus.end());
        node.properties.insert(property);
      }
      builder.add(hosts, test::id_set(cores), test::id_set(gpus), {property});
    }
    const bool complete = std::all_of(model.begin(), model.end(),
                                      [](const auto& entry) { return !entry.second.cores.empty(); });
    if (complete) {
      CHECK(test::model_of(builder.finish()) == model);
    } else {
      CHECK_THROWS_AS(static_cast<void>(builder.finish()), Error);
    }
  }
}

}  // namespace
}  // namespace resourced::rset
