// The inventory from [[resource.config]] or from an R file.
#include "config/inventory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::rset::ResourceSet;
using resourced::test::failure_of;
using resourced::test::load_text;
using resourced::test::TempDir;

TEST_CASE("an R that was handed down is numbered from 0, or by a host order") {
  const TempDir dir;
  const char* r = R"({"version":1,"execution":{"R_lite":[{"rank":"4-6","children":{"core":"0-1"}}],)"
                  R"("nodelist":["a[4-6]"],"nslots":3,"properties":{"x":"5"}}})";
  dir.write("R", r);
  const auto load_with = [&](const std::string& keys) {
    return load(dir.write("c.toml", "[resource]\nparent-uri = \"ipc:///p\"\n" + keys));
  };
  const Inventory plain = load_inventory(load_with("path = \"R\"\nexclude = \"a6\"\n"));
  CHECK(plain.method == "job-info");
  CHECK(plain.resources.ranks().encode() == "0-2");
  CHECK(plain.resources.properties() == ResourceSet::Properties{{"x", text::IdSet{1}}});
  CHECK(plain.exclude == text::IdSet{2});
  REQUIRE(plain.handed_down);
  CHECK(plain.handed_down->ranks().encode() == "4-6");

  const Inventory ordered = load_inventory(load_with("path = \"R\"\nrerank = \"a[6,4-5]\"\n"));
  CHECK(ordered.resources.nodelist().encode() == "a[6,4-5]");
  CHECK(failure_of([&] {
          static_cast<void>(load_inventory(load_with("path = \"R\"\nrerank = \"a[4-5]\"\n")));
        }).text.find("c.toml:4: resource.rerank: host a6 is missing") != std::string::npos);
  CHECK(failure_of([&] {
          static_cast<void>(load_with("rerank = \"\"\n"));
        }).text.find("c.toml:3: resource.rerank: names no host") != std::string::npos);

  // The parent's R from the environment: the text itself, or the path of a file.
  Config config = load_with("");
  CHECK_FALSE(config.resource.has_inventory());
  for (const std::string& given : {std::string(r), dir.file("R")}) {
    config.resource.parent_r = given;
    CHECK(load_inventory(config).resources == plain.resources);
  }
  config.resource.parent_r = "{}";
  CHECK(failure_of([&] {
          static_cast<void>(load_inventory(config));
        }).text.starts_with("$RESOURCED_PARENT_R: "));
  config.resource.parent_r = "/no/such";
  CHECK(failure_of([&] { static_cast<void>(load_inventory(config)); }).errnum == ENOENT);
}

TEST_CASE("ranks are numbered in order of first mention, later entries add") {
  const Inventory inventory = load_inventory(load_text(R"(
[[resource.config]]
hosts = "b[0-1]"
cores = "0-3"
[[resource.config]]
hosts = "a0,b1,late"
gpus = "0-1"
properties = ["gpu"]
[[resource.config]]
hosts = "a0,late"
cores = "0"
[[resource.config]]
hosts = "b0,a0"
properties = ["mixed", "gpu"]
)"));
  CHECK(inventory.method == "configuration");
  CHECK(inventory.exclude.empty());
  CHECK(inventory.resources.to_json() == nlohmann::json::parse(R"({
    "version": 1,
    "execution": {
      "R_lite": [
        {"rank": "0", "children": {"core": "0-3"}},
        {"rank": "1", "children": {"core": "0-3", "gpu": "0-1"}},
        {"rank": "2-3", "children": {"core": "0", "gpu": "0-1"}}],
      "nodelist": ["b[0-1],a0,late"],
      "properties": {"gpu": "0-3", "mixed": "0,2"},
      "starttime": 0.0, "expiration": 0.0}})"));
}

TEST_CASE("a Flux site's file of 16384 hosts") {
  const Inventory inventory = load_inventory(load_text(R"(
[resource]
exclude = "test[0-1]"
[[resource.config]]
hosts = "test[0-16383]"
cores = "0-95"
gpus = "0-3"
[[resource.config]]
hosts = "test[0-7]"
properties = ["debug"]
[[resource.config]]
hosts = "test[8-16383]"
properties = ["batch"]
)"));
  const ResourceSet& resources = inventory.resources;
  CHECK(resources.counts() == rset::ResourceCounts{16384, 16384 * 96, 16384 * 4});
  CHECK(resources.groups().size() == 1);
  CHECK(resources.nodelist().encode() == "test[0-16383]");
  CHECK(resources.properties().at("debug").encode() == "0-7");
  CHECK(resources.properties().at("batch").encode() == "8-16383");
  CHECK(inventory.exclude.encode() == "0-1");
}

TEST_CASE("an entry for each host gives the same as one for all") {
  std::string single;
  for (int i = 0; i < 1000; ++i)
    single += fmt::format(
        "[[resource.config]]\nhosts = \"test{}\"\ncores = \"0-7\"\nproperties = [\"p{}\"]\n", i, i % 2);
  const ResourceSet resources = load_inventory(load_text(single)).resources;
  CHECK(resources.counts() == rset::ResourceCounts{1000, 8000, 0});
  CHECK(resources.groups().size() == 1);
  CHECK(resources.nodelist().encode() == "test[0-999]");
  CHECK(resources.properties().at("p0").count() == 500);
}

TEST_CASE("an R file, exclusion by rank and a scheduling key of its own") {
  const TempDir dir;
  dir.write("R", R"({"version": 1, "execution": {"R_lite": [{"rank": "5,7", "children": {"core": "0-1"}}],
                     "nodelist": ["x,y"], "properties": {"p": "7"}}, "scheduling": {"writer": "a"}})");
  const std::string base = "[resource]\npath = \"R\"\nexclude = \"7\"\n";
  SUBCASE("the R's own") {
    const Inventory inventory = load_inventory(load(dir.write("c.toml", base)));
    CHECK(inventory.resources.ranks().encode() == "5,7");
    CHECK(inventory.exclude.encode() == "7");
    REQUIRE(inventory.resources.scheduling());
    CHECK(*inventory.resources.scheduling() == R"({"writer":"a"})");
  }
  SUBCASE("that of a file takes its place") {
    dir.write("s.json", R"({"graph": {"nodes": [], "edges": []}, "writer": "b"})");
    const Inventory inventory = load_inventory(load(dir.write("c.toml", base + "scheduling = \"s.json\"\n")));
    REQUIRE(inventory.resources.scheduling());
    CHECK(*inventory.resources.scheduling() == R"({"graph":{"nodes":[],"edges":[]},"writer":"b"})");
  }
}

TEST_CASE("a key that names more hosts than any inventory has is refused before they are looked at") {
  // 2^22 + 1 hosts.
  const std::string hosts = "a[0-1048575],b[0-1048575],c[0-1048575],d[0-1048575],e";
  const std::string inventory = "[[resource.config]]\nhosts = \"a[0-3]\"\ncores = \"0\"\n";
  const TempDir dir;
  const auto refusal = [&](const std::string& text, const auto& act) {
    const std::string file = dir.write("c.toml", text);
    const std::string error = failure_of([&] { act(load(file)); }).text;
    return error.starts_with(file + ':') ? error.substr(file.size() + 1) : error;
  };
  const auto load_all = [](const Config& config) { static_cast<void>(load_inventory(config)); };
  const std::string exclude = "[resource]\nexclude = \"" + hosts + "\"\n";
  const std::string why = "2: resource.exclude: names 4194305 hosts, more than 4194304";
  CHECK(refusal(exclude + inventory, load_all) == why);
  // With discovery by node agents, the excluded hosts need not exist in the inventory.
  CHECK(refusal(exclude, [](const Config& config) { static_cast<void>(excluded_hosts(config)); }) == why);
  CHECK(refusal(exclude, [](const Config& config) {
          Absent absent;
          absent.any_host = true;
          static_cast<void>(load_exclude(config, ResourceSet(), absent));
        }) == why);
  CHECK(refusal("[queues.q]\nhosts = \"" + hosts + "\"\n" + inventory, load_all) ==
        "2: queues.q.hosts: names 4194305 hosts, more than 4194304");
  const std::string most = hosts.substr(0, hosts.size() - 2);
  CHECK(refusal("[resource]\nexclude = \"" + most + "\"\n" + inventory, load_all) ==
        "2: resource.exclude: unknown host: a4");
}

TEST_CASE("a host whose name a shell or ssh takes for more is refused wherever it is named") {
  const TempDir dir;
  const std::string inventory = "[[resource.config]]\nhosts = \"a[0-3]\"\ncores = \"0\"\n";
  const auto refusal = [&](const std::string& text) {
    const std::string file = dir.write("c.toml", text);
    const std::string error = failure_of([&] {
                                const Config config = load(file);
                                static_cast<void>(excluded_hosts(config));
                                static_cast<void>(load_inventory(config));
                              }).text;
    return error.starts_with(file + ':') ? error.substr(file.size() + 1) : error;
  };
  const std::string why =
      R"("-oProxyCommand=x" cannot be the name of a node, which has letters, digits, '.', '-' and '_', and )"
      "begins with a letter or digit";
  CHECK(refusal("[[resource.config]]\nhosts = \"a1,-oProxyCommand=x\"\ncores = \"0\"\n") ==
        "2: resource.config[0].hosts: " + why);
  CHECK(refusal("[resource]\nexclude = \"-oProxyCommand=x\"\n" + inventory) == "2: resource.exclude: " + why);
  CHECK(refusal("[queues.q]\nhosts = \"-oProxyCommand=x\"\n" + inventory) == "2: queues.q.hosts: " + why);
  CHECK(refusal("[[access.key]]\nname = \"k\"\npublic-key = \"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7\"\n"
                "roles = [\"agent\"]\nhosts = \"-oProxyCommand=x\"\n" +
                inventory) == "5: access.key[0].hosts: " + why);
  const std::string r = R"({"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],)"
                        R"("nodelist":["-oProxyCommand=x"]}})";
  const std::string path = dir.write("R", r);
  CHECK(refusal("[resource]\npath = \"R\"\n") == fmt::format("2: resource.path: {}: {}", path, why));
  CHECK(refusal("[resource]\nparent-uri = \"ipc:///p\"\npath = \"R\"\nrerank = \"-oProxyCommand=x\"\n") ==
        "4: resource.rerank: " + why);
  Config handed_down = load_text("[resource]\nparent-uri = \"ipc:///p\"\n");
  handed_down.resource.parent_r = r;
  CHECK(failure_of([&] { static_cast<void>(load_inventory(handed_down)); }).text ==
        "$RESOURCED_PARENT_R: " + why);
}

TEST_CASE("config.get shows the resource table as it was written, and the defaults of the rest") {
  const Config config = load_text(R"(
[resource]
noverify = true
journal-max = 5
[[resource.config]]
hosts = "a[0-1]"
cores = "0-3"
properties = ["x"]
[bus]
heartbeat-interval = 2
[store]
history = inf
)");
  CHECK(to_json(config) == nlohmann::json::parse(R"({
    "resource": {"noverify": true, "journal-max": 5,
                 "config": [{"hosts": "a[0-1]", "cores": "0-3", "properties": ["x"]}]},
    "bus": {"listen": [], "send-hwm": 1000, "receive-hwm": 1000, "heartbeat-interval": 2,
            "heartbeat-timeout": "15s", "max-message-size": 67108864},
    "store": {"history": "inf"},
    "log": {"level": "info"},
    "acquire": {"keep": "0s"},
    "allocations": {"max-bytes": 67108864, "free-expired": false},
    "limits": {"outstanding-requests": 1024, "requests-per-second": 50000, "connections-per-uid": 4096,
               "journal-consumers": 1024, "handshake-timeout": "10s"},
    "monitor": {"mode": "static", "torpid-after": "30s", "offline-after": "2m", "grace": "10s",
                "coalesce": "0.2s", "flap-count": 5, "flap-window": "10m", "lost-after": "2m",
                "health-return": "manual", "health-gate": false}})"));
}

TEST_CASE("what --check prints") {
  const TempDir dir;
  const std::string file = dir.write("c.toml", R"(
[resource]
exclude = "1"
[[resource.config]]
hosts = "a[0-3]"
cores = "0-3"
[[resource.config]]
hosts = "a[2-3]"
gpus = "0"
properties = ["gpu"]
[bus]
listen = ["ipc:///tmp/bus"]
[store]
directory = "/var/lib/r"
[[acquire.partition]]
name = "g"
constraint = "gpu"
[queues.few]
hosts = "a1"
)");
  const Config config = load(file);
  const Inventory inventory = load_inventory(config);
  CHECK(describe(config, &inventory) == "file: " + file +
                                            "\n"
                                            "inventory: 4 nodes, 16 cores, 2 gpus\n"
                                            "nodelist: a[0-3]\n"
                                            "property +few: 1 nodes, a1\n"
                                            "property gpu: 2 nodes, a[2-3]\n"
                                            "excluded: 1 nodes, a1\n"
                                            "partition g: 2 nodes, a[2-3] (constraint gpu)\n"
                                            "queue few: 1 nodes, a1\n"
                                            "listen: ipc:///tmp/bus\n"
                                            "state: /var/lib/r\n");
}
