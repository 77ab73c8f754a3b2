// An alloc is refused for keys, times and properties of its R, beside the resources.
#include <doctest/doctest.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

ResourceSet with_keys(std::string_view keys, std::string_view beside = "") {
  std::string text = R"({"version":1,"execution":{"R_lite":[{"rank":"1","children":{"core":"0"}}],)";
  text += R"("nodelist":["node1"])";
  text += keys;
  text += "}";
  text += beside;
  return ResourceSet::parse(text + "}");
}

std::shared_ptr<const ResourceSet> inventory(std::string_view keys = "") {
  return std::make_shared<const ResourceSet>(
      ResourceSet::parse(R"({"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-3"}}],)"
                         R"("nodelist":["node[0-3]"])" +
                         std::string(keys) + "}}"));
}

TEST_CASE("an R as Flux and Fluxion write it is allocated, with a graph beside its execution") {
  World it(inventory(R"(,"starttime":5,"expiration":100,"properties":{"fast":"0-1"})"));
  it.alloc("j1", with_keys(R"(,"starttime":10,"expiration":90,"nslots":1,"properties":{"fast":"1"})",
                           R"(,"scheduling":{"graph":{"nodes":[],"edges":[]},"x":1})"));
  CHECK(it.text() == "j1:1/0;");
}

TEST_CASE("a key of execution that RFC 20 does not know is refused, unless the inventory has the same") {
  World it(inventory(R"(,"site":{"a":[1]})"));
  const auto text_of_key = [](const std::string& key) {
    return "allocation j1: execution." + key +
           " is not a key of RFC 20, nor the same in the inventory; leave it out, or put it into scheduling";
  };
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j1", with_keys(R"(,"queue":"x")")); }) == text_of_key("queue"));
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j1", with_keys(R"(,"site":{"a":[2]})")); }) ==
        text_of_key("site"));
  it.alloc("j1", with_keys(R"(,"site":{"a":[1]})"));
  World plain(inventory());
  CHECK(plain.refusal(EINVAL, [&] { plain.alloc("j1", with_keys(R"(,"site":{"a":[1]})")); }) ==
        text_of_key("site"));
}

TEST_CASE("an expiration after that of the resource set is refused, in the R or beside it") {
  World it(inventory(R"(,"expiration":100)"));
  const char* const text = "allocation j1: expiration 101 is after that of the resource set, 100";
  CHECK(it.refusal(EINVAL, [&] { it.alloc("j1", with_keys(R"(,"expiration":101)")); }) == text);
  CHECK(it.refusal(EINVAL, [&] { it.alloc({{"j1", with_keys(""), wall_time(101)}}); }) == text);
  it.alloc({{"j1", with_keys(R"(,"expiration":100)"), wall_time(100)}});
  it.step(module::ExpirationCommand{});
  it.free({"j1"});
  it.alloc({{"j1", with_keys(R"(,"expiration":101)"), wall_time(102)}});
}

TEST_CASE("properties that a target has no more make the R stale") {
  World it(inventory(R"(,"properties":{"fast":"0-1","big":"1"})"));
  using Op = module::PropertyCommand::Op;
  const ResourceSet wanted = with_keys(R"(,"properties":{"fast":"1","big":"1"})");
  it.step(module::PropertyCommand{Op::remove, "fast", "node1"});
  CHECK(it.refusal(ESTALE, [&] { it.alloc("j1", wanted); }) ==
        "allocation j1: rank 1 (node1) does not have property fast: allocate again without it");
  it.step(module::PropertyCommand{Op::add, "fast", "node1"});
  it.alloc("j1", wanted);
  // An allocation keeps the properties that it had, and a repeated request takes it as made.
  it.step(module::PropertyCommand{Op::remove, "fast", "node1"});
  CHECK(it.change({}, {{"j1", wanted}}, true).records.empty());
}

}  // namespace
}  // namespace resourced::engine::ledger_tests
