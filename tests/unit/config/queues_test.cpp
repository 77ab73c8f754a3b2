// RFC 33, queues.NAME.hosts: the hosts of a queue get its membership property.
#include <doctest/doctest.h>

#include "config/reload.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::rset::ResourceSet;
using resourced::test::failure_of;
using resourced::test::load_text;
using resourced::test::TempDir;
using resourced::text::IdSet;

namespace {

const std::string four_hosts =
    "[[resource.config]]\nhosts = \"a[0-3]\"\ncores = \"0\"\nproperties = [\"p\"]\n";

/// Property names with their ranks: "+batch=0-1 p=0-3".
std::string properties(const ResourceSet& resources) {
  std::string text;
  for (const auto& [name, ranks] : resources.properties())
    text += (text.empty() ? "" : " ") + name + '=' + ranks.encode();
  return text;
}

std::string properties_of(const std::string& queues) {
  return properties(load_inventory(load_text(four_hosts + queues)).resources);
}

std::string inventory_refusal(const std::string& queues) {
  const TempDir dir;
  const std::string file = dir.write("c.toml", queues + four_hosts);
  const std::string error = failure_of([&] { static_cast<void>(load_inventory(load(file))); }).text;
  return error.starts_with(file + ':') ? error.substr(file.size() + 1) : error;
}

}  // namespace

TEST_CASE("RFC 33: the hosts of a queue get the property +NAME") {
  CHECK(properties_of("[queues.batch]\nhosts = \"a[0-1]\"\n[queues.debug]\nhosts = \"a3,a1\"\n") ==
        "+batch=0-1 +debug=1,3 p=0-3");
}

TEST_CASE("RFC 33: the literal all is every configured host") {
  CHECK(properties_of("[queues.any]\nhosts = \"all\"\n") == "+any=0-3 p=0-3");
}

TEST_CASE("RFC 33: a queue without hosts gives no property") {
  CHECK(properties_of(
            "[queues.any]\n[queues.batch]\nrequires = [\"p\"]\n[queues.alias]\nparent = \"batch\"\n") ==
        "p=0-3");
}

TEST_CASE("RFC 33: hosts in an R file get the property on all ranks that they stand for") {
  const TempDir dir;
  dir.write("R", R"({"version":1,"execution":{"R_lite":[{"rank":"5-8","children":{"core":"0"}}],)"
                 R"("nodelist":["a,b,a,c"]}})");
  const Config config =
      load(dir.write("c.toml", "[resource]\npath = \"R\"\n[queues.batch]\nhosts = \"a\"\n"));
  CHECK(properties(load_inventory(config).resources) == "+batch=5,7");
}

TEST_CASE("RFC 33: an unknown host and an empty list are refused") {
  CHECK(inventory_refusal("[queues.batch]\nhosts = \"a[0-1],b7\"\n") ==
        "2: queues.batch.hosts: unknown host: b7");
  CHECK(inventory_refusal("[queues.batch]\nhosts = \"all,a1\"\n") ==
        "2: queues.batch.hosts: unknown host: all");
  CHECK(inventory_refusal("[queues.batch]\nhosts = \"\"\n") == "2: queues.batch.hosts: is empty");
  CHECK(inventory_refusal("[queues.batch]\nhosts = \",\"\n").starts_with("2: queues.batch.hosts: "));
  CHECK(inventory_refusal("[queues.batch]\nhosts = \"a[1\"\n").starts_with("2: queues.batch.hosts: "));
  CHECK(inventory_refusal("[queues.batch]\nhosts = [\"a1\"]\n") ==
        "2: queues.batch.hosts: must be a string, not an array");
}

TEST_CASE("RFC 33: hosts cannot stand beside requires, nor in a virtual queue") {
  CHECK(inventory_refusal("[queues.batch]\nhosts = \"a1\"\nrequires = [\"p\"]\n") ==
        "2: queues.batch.hosts: cannot be combined with requires (RFC 33)");
  CHECK(inventory_refusal("[queues.batch]\n[queues.fast]\nparent = \"batch\"\nhosts = \"a1\"\n") ==
        "4: queues.fast.hosts: cannot be combined with parent (RFC 33)");
}

TEST_CASE("RFC 33: the parent of a virtual queue is a queue that is not virtual") {
  const std::string batch = "[queues.batch]\n[queues.fast]\nparent = \"batch\"\n";
  CHECK(properties_of(batch) == "p=0-3");
  CHECK(inventory_refusal("[queues.fast]\nparent = \"none\"\n") ==
        "2: queues.fast.parent: \"none\" is not a queue");
  CHECK(inventory_refusal(batch + "[queues.faster]\nparent = \"fast\"\n") ==
        "5: queues.faster.parent: \"fast\" is a virtual queue itself");
  CHECK(inventory_refusal("[queues.fast]\nparent = \"fast\"\n") ==
        "2: queues.fast.parent: \"fast\" is a virtual queue itself");
  CHECK(inventory_refusal("[queues.batch]\n[queues.fast]\nparent = 1\n") ==
        "3: queues.fast.parent: must be a string, not an integer");
}

TEST_CASE("RFC 33: a virtual queue has neither requires nor a scheduler policy") {
  const std::string virtual_queue = "[queues.batch]\n[queues.fast]\nparent = \"batch\"\n";
  CHECK(inventory_refusal(virtual_queue + "requires = [\"p\"]\n") ==
        "4: queues.fast.requires: cannot be combined with parent (RFC 33)");
  CHECK(inventory_refusal(virtual_queue + "[queues.fast.policy.scheduler]\nname = \"x\"\n")
            .ends_with("queues.fast.policy: scheduler cannot be combined with parent (RFC 33)"));
  CHECK(properties_of(virtual_queue + "[queues.fast.policy.limits]\nduration = \"1h\"\n") == "p=0-3");
}

TEST_CASE("a queue is a table, and its name can stand in a property") {
  CHECK(inventory_refusal("queues = 1\n") == "1: queues: must be a table, not an integer");
  CHECK(inventory_refusal("[queues]\nbatch = \"a1\"\n") == "2: queues.batch: must be a table, not a string");
  CHECK(inventory_refusal("[queues.\"a|b\"]\nhosts = \"a1\"\n")
            .starts_with("2: queues.\"a|b\".hosts: no property can be named \"+a|b\": "));
}

TEST_CASE("a reload adds and removes the property where the hosts of a queue change") {
  const auto plan = [](const std::string& now_queues, const std::string& next_queues) {
    const Config now = load_text(four_hosts + now_queues);
    const Config next = load_text(four_hosts + next_queues);
    return plan_reload(now, load_inventory(now), next, load_inventory(next));
  };
  const std::string before = "[queues.batch]\nhosts = \"a[0-1]\"\n[queues.debug]\nhosts = \"a3\"\n";
  const ReloadPlan changed =
      plan(before, "[queues.batch]\nhosts = \"a[1-2]\"\n[queues.more]\nhosts = \"all\"\n");
  CHECK(changed.property_add ==
        ResourceSet::Properties{{"+batch", IdSet::parse("2")}, {"+more", IdSet::parse("0-3")}});
  CHECK(changed.property_remove ==
        ResourceSet::Properties{{"+batch", IdSet::parse("0")}, {"+debug", IdSet::parse("3")}});
  CHECK(resourced::test::changes_nothing(plan(before, before)));
}
