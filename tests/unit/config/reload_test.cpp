// Settings that a reload changes live, and reloads that are refused as a whole.
#include "config/reload.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::rset::ResourceSet;
using resourced::test::changes_nothing;
using resourced::test::Failure;
using resourced::test::failure_of;
using resourced::test::TempDir;
using resourced::text::IdSet;

namespace {

struct Loaded {
  Config config;
  Inventory inventory;
};

Loaded load_both(const std::string& file) {
  Loaded loaded;
  loaded.config = load(file);
  if (loaded.config.resource.has_inventory()) loaded.inventory = load_inventory(loaded.config);
  return loaded;
}

/// A configuration of four hosts; the arguments go into the [resource] table, into its second entry, and to
/// the end.
std::string configuration(std::string_view resource, std::string_view entry, std::string_view rest) {
  return fmt::format(
      "[resource]\n{}\n[[resource.config]]\nhosts = \"a[0-3]\"\ncores = \"0-3\"\n[[resource.config]]\nhosts "
      "= "
      "\"a[2-3]\"\n{}\n{}\n",
      resource, entry, rest);
}

ReloadPlan plan(const std::string& now, const std::string& next) {
  const TempDir dir;
  const Loaded a = load_both(dir.write("c.toml", now));
  const Loaded b = load_both(dir.write("c.toml", next));
  return plan_reload(a.config, a.inventory, b.config, b.inventory);
}

}  // namespace

TEST_CASE("what stays the same changes nothing, however it is written") {
  const std::string now = configuration("", "properties = [\"x\"]", "");
  CHECK(changes_nothing(plan(now, now)));
  CHECK(changes_nothing(plan(
      now,
      configuration("exclude = \"\"\njournal-max = 100000\nnoverify = false", "properties = [\"x\", \"x\"]",
                    "[bus]\nsend-hwm = 1000\nheartbeat-interval = \"5000ms\"\n[store]\n"
                    "history = \"inf\"\n[log]\nlevel = \"info\""))));
  CHECK(changes_nothing(
      plan(now,
           "[resource]\nconfig = [{hosts = \"a[0-1],a[2-3]\", cores = \"0,1,2-3\"}, {hosts = \"a[2,3]\", "
           "properties = [\"x\"]}]\n")));
}

TEST_CASE("properties are planned as differences") {
  const std::string now = configuration("exclude = \"0\"", "properties = [\"x\", \"y\"]", "");
  const ReloadPlan changes = plan(now, configuration("", "properties = [\"x\", \"z\"]",
                                                     "[[resource.config]]\nhosts = \"a0\"\nproperties = "
                                                     "[\"x\"]\n"));
  CHECK(changes.property_add ==
        ResourceSet::Properties{{"x", IdSet::parse("0")}, {"z", IdSet::parse("2-3")}});
  CHECK(changes.property_remove == ResourceSet::Properties{{"y", IdSet::parse("2-3")}});
  CHECK_FALSE(changes.parent);
}

TEST_CASE("properties of an R file change live too") {
  const TempDir dir;
  const auto r = [](std::string_view properties) {
    return fmt::format(R"({{"version":1,"execution":{{"R_lite":[{{"rank":"0-1","children":{{"core":"0"}}}}],)"
                       R"("nodelist":["a[0-1]"],"properties":{}}}}})",
                       properties);
  };
  const std::string file = dir.write("c.toml", "[resource]\npath = \"R\"\n");
  dir.write("R", r(R"({"x":"0-1"})"));
  const Loaded now = load_both(file);
  dir.write("R", r(R"({"x":"1"})"));
  const Loaded next = load_both(file);
  const ReloadPlan changes = plan_reload(now.config, now.inventory, next.config, next.inventory);
  CHECK(changes.property_remove == ResourceSet::Properties{{"x", IdSet{0}}});
  CHECK(changes.property_add.empty());
}

TEST_CASE("what cannot change live is refused and named") {
  const std::string base = configuration("", "properties = [\"x\"]", "");
  const struct {
    std::string name;
    std::string next;
    std::string expected;  // after the directory
  } cases[] = {
      {"a host more", base + "[[resource.config]]\nhosts = \"b\"\ncores = \"0\"\n",
       "c.toml:3: resource.config: hosts cannot change without a restart"},
      {"hosts in another order", "[[resource.config]]\nhosts = \"a[3,2,1,0]\"\ncores = \"0-3\"\n",
       "c.toml:1: resource.config: hosts cannot change without a restart"},
      {"cores", base + "[[resource.config]]\nhosts = \"a[1-2]\"\ncores = \"4\"\n",
       "c.toml:3: resource.config: cores and gpus of \"a1\" cannot change without a restart"},
      {"gpus", configuration("", "properties = [\"x\"]\ngpus = \"0\"", ""),
       "c.toml:3: resource.config: cores and gpus of \"a2\" cannot change without a restart"},
      {"no inventory any more", "[log]\n", "resource.path: hosts cannot change without a restart"},
      {"norestrict", configuration("norestrict = true", "", ""),
       "c.toml:2: resource.norestrict: cannot change without a restart"},
      {"noverify", configuration("noverify = true", "", ""),
       "c.toml:2: resource.noverify: cannot change without a restart"},
      {"verify", configuration("verify = true", "", ""),
       "c.toml:2: resource.verify: cannot change without a restart"},
      {"rerank", configuration("rerank = \"a[3,0-2]\"", "", ""),
       "c.toml:2: resource.rerank: cannot change without a restart"},
      {"rediscover", configuration("rediscover = true", "", ""),
       "c.toml:2: resource.rediscover: cannot change without a restart"},
      {"parent-uri", configuration("parent-uri = \"ipc:///x\"", "", ""),
       "c.toml:2: resource.parent-uri: cannot change without a restart"},
      {"size", configuration("size = 4", "", ""), "c.toml:2: resource.size: cannot change without a restart"},
      {"discovery-timeout", configuration("discovery-timeout = 4", "", ""),
       "c.toml:2: resource.discovery-timeout: cannot change without a restart"},
      {"shrink-lost", configuration("shrink-lost = true", "", ""),
       "c.toml:2: resource.shrink-lost: cannot change without a restart"},
      {"listen", configuration("", "", "[bus]\nlisten = [\"ipc:///a\"]"),
       "c.toml:10: bus.listen: cannot change without a restart"},
      {"send-hwm", configuration("", "", "[bus]\nsend-hwm = 1"),
       "c.toml:10: bus.send-hwm: cannot change without a restart"},
      {"receive-hwm", configuration("", "", "[bus]\nreceive-hwm = 1"),
       "c.toml:10: bus.receive-hwm: cannot change without a restart"},
      {"heartbeat-interval", configuration("", "", "[bus]\nheartbeat-interval = 1"),
       "c.toml:10: bus.heartbeat-interval: cannot change without a restart"},
      {"heartbeat-timeout", configuration("", "", "[bus]\nheartbeat-timeout = 60"),
       "c.toml:10: bus.heartbeat-timeout: cannot change without a restart"},
      {"max-message-size", configuration("", "", "[bus]\nmax-message-size = 100000"),
       "c.toml:10: bus.max-message-size: cannot change without a restart"},
      {"curve-key-file", configuration("", "", "[bus]\ncurve-key-file = \"k\""),
       "c.toml:10: bus.curve-key-file: cannot change without a restart"},
      {"directory", configuration("", "", "[store]\ndirectory = \"/x\""),
       "c.toml:10: store.directory: cannot change without a restart"},
      {"partition", configuration("", "", "[[acquire.partition]]\nname = \"p\"\ntargets = \"0\""),
       "c.toml:9: acquire.partition: cannot change without a restart"},
      {"refused as a whole, live changes too",
       configuration("exclude = \"0\"\nsize = 4", "", "[log]\nlevel = \"off\""),
       "c.toml:3: resource.size: cannot change without a restart"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const Failure failure = failure_of([&] { static_cast<void>(plan(base, c.next)); });
    CHECK(failure.errnum == EINVAL);
    const std::string text =
        failure.text.starts_with('/') ? failure.text.substr(failure.text.find("c.toml")) : failure.text;
    CHECK(text == c.expected);
  }
}

TEST_CASE("where a parent is and how it is followed is live, that there is one is not") {
  const std::string now = configuration("parent-uri = \"ipc:///x\"", "", "");
  for (const char* more : {"parent-uri = \"ipc:///y\"", "parent-uri = \"ipc:///x\"\nno-update-watch = true",
                           "parent-uri = \"ipc:///x\"\nparent-key-file = \"k\"",
                           "parent-uri = \"ipc:///x\"\nparent-settle = 5"}) {
    CAPTURE(more);
    const ReloadPlan changes = plan(now, configuration(more, "", ""));
    CHECK(changes.parent);
  }
  CHECK(changes_nothing(plan(now, now)));
  CHECK(failure_of([&] { static_cast<void>(plan(now, configuration("", "", ""))); }).errnum == EINVAL);
}

TEST_CASE("another scheduling key is refused, the same in another file is not") {
  const TempDir dir;
  dir.write("one", R"({"writer": "a", "x": 1})");
  dir.write("same", R"({"x": 1, "writer": "a"})");
  dir.write("other", R"({"writer": "b"})");
  const auto with = [&](const char* name) {
    return load_both(dir.write(std::string(name) + ".toml",
                               configuration(fmt::format("scheduling = \"{}\"", name), "", "")));
  };
  const Loaded now = with("one");
  const Loaded same = with("same");
  const Loaded other = with("other");
  CHECK(changes_nothing(plan_reload(now.config, now.inventory, same.config, same.inventory)));
  CHECK(failure_of([&] {
          static_cast<void>(plan_reload(now.config, now.inventory, other.config, other.inventory));
        }).text == dir.file("other.toml:2: resource.scheduling: cannot change without a restart"));
}
