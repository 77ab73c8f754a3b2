// resource.reload with a path: an R from a file replaces the inventory, live and after a restart, as in Flux,
// and targets keep their drains.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "fixture.hpp"
#include "harness/other_user.hpp"
#include "node_agent.hpp"
#include "wire/local_client.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// An R of these hosts, with one rank each from 0 on, and four cores.
json resources(const std::vector<std::string>& hosts, double expiration = 0) {
  return {{"version", 1},
          {"execution",
           {{"R_lite", {{{"rank", fmt::format("0-{}", hosts.size() - 1)}, {"children", {{"core", "0-3"}}}}}},
            {"starttime", 0.0},
            {"expiration", expiration},
            {"nodelist", hosts}}}};
}

struct Loading : Cluster {
  using Cluster::Cluster;

  std::string file(const json& r, const std::string& name = "R.json") { return dir.write(name, r.dump()); }
  Outcome load(const json& r, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"reload", file(r)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ctl.run(arguments);
  }
  json inventory() { return operator_client.call("resource.get").json(); }
  void restart() {
    CHECK(daemon.terminate() == 0);
    daemon.start();
  }
};

TEST_SUITE_BEGIN("reload");

TEST_CASE("an R from a file is in force at once, with the drains of its hosts, and the journal goes on") {
  Loading cluster;
  cluster.drain("test6", "disk");
  cluster.drain("test1", "gone");
  cluster.ctl.done({"property", "add", "old", "3"});
  json r = resources({"new0", "test7", "test6", "test0"}, 4e9);
  r["execution"]["properties"] = {{"fast", "1-2"}};
  const Outcome loaded = cluster.load(r);
  CHECK(loaded.err == "");
  REQUIRE(loaded.status == 0);

  const json status = cluster.status();
  CHECK(status["R"]["execution"]["nodelist"] == json::parse(R"(["new0,test[7,6,0]"])"));
  CHECK(status["R"]["execution"]["properties"] == json{{"fast", "1-2"}});
  CHECK(status["R"]["execution"]["expiration"] == 4e9);
  CHECK(status["online"] == "0-3");
  REQUIRE(status["drain"].size() == 1);
  CHECK(status["drain"]["2"]["reason"] == "disk");
  CHECK(cluster.inventory()["method"] == "reload");
  const auto events = history(cluster.operator_client);
  REQUIRE(events.size() >= 5);
  CHECK(events[2]["name"] == "drain");
  const json& define = events[5];
  CHECK(define["name"] == "resource-define");
  CHECK(define["context"]["method"] == "reload");

  const Scheduler scheduler(cluster.daemon.uri());
  CHECK(scheduler.first["up"] == "0-1,3");
  CHECK(scheduler.first["resources"]["execution"]["nodelist"] == json::parse(R"(["new0,test[7,6,0]"])"));
}

TEST_CASE("a loaded R is in force after restarts until the configured inventory itself changes") {
  Loading cluster;
  const auto config = [](const char* cores, const std::string& tables = "") {
    return tables + fmt::format("[[resource.config]]\nhosts = \"test[0-7]\"\ncores = \"{}\"\n", cores);
  };
  const auto hosts = [&] { return cluster.status()["R"]["execution"]["nodelist"]; };
  const json as_loaded = json::parse(R"(["test[2-3]","x"])");
  const json as_configured = json::parse(R"(["test[0-7]"])");
  cluster.drain("test3", "disk");
  REQUIRE(cluster.load(resources({"test2", "test3", "x"})).status == 0);
  const json loaded = hosts();
  CHECK(loaded == json::parse(R"(["test[2-3],x"])"));
  cluster.restart();
  CHECK(hosts() == loaded);
  CHECK(cluster.inventory()["method"] == "kvs");
  CHECK(cluster.status()["drain"].begin().key() == "1");
  until_logged(cluster.daemon, "using the R that resource.reload loaded");

  // Other settings apply to the loaded R, both live and at a start, also for a host that only this R has.
  cluster.daemon.configure(config("0-3", "[resource]\nexclude = \"x\"\n"));
  cluster.ctl.done({"reload"});
  CHECK(cluster.status()["exclude"] == "2");
  cluster.daemon.kill();
  cluster.daemon.start();
  CHECK(cluster.status()["exclude"] == "2");
  cluster.ctl.done({"undrain", "1"});

  // A changed inventory in the configuration takes effect at the next start, and stays in force.
  cluster.daemon.configure(config("0-5"));
  cluster.ctl.done({"reload"});
  CHECK(hosts() == loaded);
  until_logged(cluster.daemon, "the configured inventory has changed: it replaces the loaded R");
  cluster.restart();
  CHECK(hosts() == as_configured);
  CHECK(cluster.inventory()["method"] == "configuration");
  until_logged(cluster.daemon, "using the configured inventory: it has changed");
  cluster.daemon.configure(config("0-3"));
  cluster.restart();
  CHECK(hosts() == as_configured);
  CHECK(cluster.status()["drain"].empty());
}

TEST_CASE("--check takes what a start takes after an R was loaded, and refuses what it refuses") {
  Loading cluster;
  const std::string first = cluster.dir.write("R4.json", resources({"a0", "a1", "a2", "a3"}).dump());
  const auto config = [&](const std::string& host) {
    return fmt::format("[resource]\npath = \"{}\"\nexclude = \"{}\"\n", first, host);
  };
  const auto check = [&] {
    return Process(resourced_command({"--check", "--config", cluster.daemon.config_file(), "--state",
                                      cluster.dir / "state"}))
        .finish();
  };
  CHECK(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(fmt::format("[resource]\npath = \"{}\"\n", first));
  cluster.daemon.start();
  REQUIRE(cluster.load(resources({"b0", "b1", "b2", "b3"})).status == 0);
  CHECK(cluster.daemon.terminate() == 0);

  cluster.daemon.configure(config("b0"));
  const Outcome good = check();
  CHECK(good.err == "");
  CHECK(good.status == 0);
  cluster.daemon.start();
  CHECK(cluster.status()["exclude"] == "0");
  CHECK(cluster.daemon.terminate() == 0);

  cluster.daemon.configure(config("a0"));
  CHECK(check().err.find("resource.exclude: unknown host: a0") != std::string::npos);
  // If the configured inventory has changed, the loaded R is not in force.
  cluster.dir.write("R4.json", resources({"a0", "a1", "a2"}).dump());
  CHECK(check().status == 0);
  cluster.daemon.configure(config("b0"));
  const Outcome bad = check();
  CHECK(bad.status == 1);
  CHECK(bad.err.find("resource.exclude: unknown host: b0") != std::string::npos);
}

TEST_CASE(
    "--check sees the R that is in force at the next start, beside a daemon that runs and without one") {
  Loading cluster;
  const std::string first = cluster.dir.write("R4.json", resources({"a0", "a1", "a2", "a3"}).dump());
  const auto configure = [&](const std::string& host) {
    cluster.daemon.configure(fmt::format("[resource]\npath = \"{}\"\nexclude = \"{}\"\n", first, host));
  };
  const auto check = [&] {
    return Process(resourced_command({"--check", "--config", cluster.daemon.config_file(), "--state",
                                      cluster.dir / "state"}))
        .finish();
  };
  CHECK(cluster.daemon.terminate() == 0);
  cluster.daemon.configure(fmt::format("[resource]\npath = \"{}\"\n", first));
  cluster.daemon.start();
  CHECK(check().out.find("nodelist: a[0-3]\n") != std::string::npos);
  REQUIRE(cluster.load(resources({"b0", "b1", "b2"})).status == 0);
  cluster.ctl.done({"shrink", "2"});
  cluster.ctl.done({"property", "add", "fast", "1"});
  for (const bool running : {true, false}) {
    CAPTURE(running);
    if (!running) CHECK(cluster.daemon.terminate() == 0);
    configure("b0");
    const Outcome good = check();
    CHECK(good.err == "");
    CHECK(good.status == 0);
    CHECK(good.out.find("using the R that resource.reload loaded") != std::string::npos);
    CHECK(good.out.find("inventory: 2 nodes, 8 cores, 0 gpus\nnodelist: b[0-1]\nproperty fast: 1 nodes, b1\n"
                        "excluded: 1 nodes, b0\n") != std::string::npos);
    configure("a0");
    const Outcome bad = check();
    CHECK(bad.status == 1);
    CHECK(bad.err.find("resource.exclude: unknown host: a0") != std::string::npos);
    cluster.dir.write("R4.json", resources({"a0", "a1"}).dump());
    const Outcome changed = check();
    CHECK(changed.out.find("using the configured inventory: it has changed") != std::string::npos);
    CHECK(changed.out.find("nodelist: a[0-1]\n") != std::string::npos);
    cluster.dir.write("R4.json", resources({"a0", "a1", "a2", "a3"}).dump());
  }
  configure("b0");
  cluster.daemon.start();
  CHECK(cluster.status()["exclude"] == "0");
}

TEST_CASE(
    "--check beside a daemon that commits without a pause reads one of its states, and changes nothing") {
  Cluster cluster;
  const auto command = resourced_command(
      {"--check", "--config", cluster.daemon.config_file(), "--state", cluster.dir / "state"});
  for (int round = 0; round < 5; ++round) {
    std::vector<std::uint32_t> requests;
    for (int i = 0; i < 300; ++i) {
      requests.push_back(
          cluster.operator_client.send(i % 2 == 0 ? "resource.drain" : "resource.undrain",
                                       {{"targets", "1"}, {"reason", std::string(9000, 'r')}}));
    }
    const Outcome checked = Process(command).finish();
    CHECK(checked.err == "");
    CHECK(checked.status == 0);
    for (const std::uint32_t request : requests) CHECK(cluster.operator_client.receive(request).errnum == 0);
  }
}

TEST_CASE("where agents tell the inventory anew, the log says what becomes of a loaded R") {
  const std::string agents = "[monitor]\nmode = \"agents\"\n";
  Loading cluster("[resource]\nsize = 2\n" + agents);
  std::vector<std::unique_ptr<NodeAgent>> nodes;
  for (const char* host : {"n0", "n1"}) {
    nodes.push_back(std::make_unique<NodeAgent>(cluster.daemon.uri(), host));
  }
  WatchingScheduler(cluster.daemon.uri()).until_up({0, 1});
  REQUIRE(cluster.load(resources({"n1", "x"})).status == 0);
  cluster.daemon.kill();
  cluster.daemon.configure("[resource]\nsize = 2\nrediscover = true\n" + agents);
  cluster.daemon.start();
  WatchingScheduler(cluster.daemon.uri()).until_up({0, 1});
  CHECK(cluster.inventory()["method"] == "dynamic-discovery");
  until_logged(cluster.daemon, "node agents report the inventory, which replaces the R that was loaded");
  CHECK(cluster.daemon.log().find("using the configured inventory") == std::string::npos);
}

TEST_CASE("while anything is acquired no R is loaded, even if it changes nothing") {
  Loading cluster;
  const json same = cluster.status()["R"];
  const std::string file = cluster.file(same);
  {
    const Scheduler scheduler(cluster.daemon.uri());
    const std::size_t events = history(cluster.operator_client).size();
    for (const bool force : {false, true}) {
      const RawResponse refused =
          cluster.operator_client.call("resource.reload", {{"path", file}, {"force", force}, {"xml", false}});
      CHECK(refused.errnum == wire_errno::busy);
      CHECK(refused.text() == "resources are busy (unload scheduler?)");
    }
    const Outcome refused = cluster.ctl.run({"reload", "--force", file});
    CHECK(refused.status == 1);
    CHECK(refused.err == "resourcectl: resources are busy (unload scheduler?)\n");
    CHECK(history(cluster.operator_client).size() == events);
    // The configuration can still be reloaded.
    cluster.ctl.done({"reload"});
  }
  CHECK(cluster.operator_client.call("resource.reload", {{"path", file}}).errnum == 0);
}

TEST_CASE("a file that is not an R is refused with its name, and nothing changes") {
  Loading cluster;
  const json status = cluster.status();
  const auto refusal = [&](const std::string& path) {
    const RawResponse response = cluster.operator_client.call("resource.reload", {{"path", path}});
    CHECK(response.errnum != 0);
    CHECK(cluster.status() == status);
    return std::pair(response.errnum, response.text());
  };
  const std::string missing = (cluster.dir / "missing").string();
  CHECK(refusal(missing) == std::pair(wire_errno::noent, missing + ": No such file or directory"));
  const std::string directory = cluster.dir.path();
  CHECK(refusal(directory) == std::pair(std::uint32_t{21}, directory + ": Is a directory"));
  const std::string fifo = (cluster.dir / "fifo").string();
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(refusal(fifo) == std::pair(wire_errno::inval, fifo + ": is not a regular file"));
  CHECK(refusal("/dev/zero") ==
        std::pair(wire_errno::inval, std::string("/dev/zero: is not a regular file")));
  const std::string text = cluster.dir.write("text", "{}");
  CHECK(refusal(text).second.starts_with(text + ": "));
  CHECK(refusal(cluster.file(json{{"version", 1}, {"execution", {{"R_lite", json::array()}}}})).first ==
        wire_errno::inval);
  const std::string option = cluster.file(resources({"-oProxyCommand=x", "n1"}));
  CHECK(refusal(option).second.starts_with(option + ": \"-oProxyCommand=x\" cannot be the name of a node"));
  // The daemon must not read an endless file to its end.
  CHECK(refusal("/proc/self/pagemap").first != 0);
  CHECK(cluster.operator_client.call("resource.reload", {{"path", 1}}).errnum == wire_errno::proto);
  CHECK(cluster.operator_client.call("resource.reload", {{"path", text}, {"force", "yes"}}).errnum ==
        wire_errno::proto);
  CHECK(cluster.operator_client.call("resource.reload", {{"path", text}, {"xml", true}}).errnum ==
        wire_errno::inval);
}

TEST_CASE("an R with more ranks than the instance takes force") {
  Loading cluster;
  std::vector<std::string> hosts;
  for (int i = 0; i < 10; ++i) hosts.push_back(fmt::format("big{}", i));
  const Outcome refused = cluster.load(resources(hosts));
  CHECK(refused.status == 1);
  CHECK(refused.err == "resourcectl: resource object contains ranks execeeding size=8 (override with -f))\n");
  CHECK(cluster.load(resources(hosts), {"--force"}).status == 0);
  CHECK(cluster.status()["online"] == "0-9");
  // An R with fewer hosts is accepted, and so is the larger one again.
  CHECK(cluster.load(resources({"a"})).status == 0);
  CHECK(cluster.load(resources(hosts)).status == 0);
}

TEST_CASE("exclude and partitions apply to a loaded R, or refuse it") {
  Loading cluster(std::string("[resource]\nexclude = \"test7\"\n[[acquire.partition]]\nname = \"fast\"\n"
                              "constraint = \"fast\"\n") +
                  std::string(eight_nodes));
  const json status = cluster.status();
  const Outcome refused = cluster.load(resources({"test0", "test1"}));
  CHECK(refused.status == 1);
  CHECK(refused.err.find("resource.exclude: unknown host: test7") != std::string::npos);
  CHECK(cluster.status() == status);
  cluster.drain("test0", "disk");
  json r = resources({"test7", "test1", "test0"});
  r["execution"]["properties"] = {{"fast", "1"}};
  CHECK(cluster.load(r).status == 0);
  CHECK(cluster.status()["exclude"] == "0");
  RawClient fast(cluster.daemon.uri());
  const std::uint32_t tag = fast.send("resource.acquire", {{"partition", "fast"}}, wire::flag_streaming);
  CHECK(fast.receive(tag).json()["up"] == "1");
  CHECK(Scheduler(cluster.daemon.uri()).first["resources"]["execution"]["R_lite"][0]["rank"] == "2");
}

TEST_CASE("only the owner names a file") {
  if (!can_be_other_users()) return;
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  Daemon daemon(
      dir, {.config = std::string(eight_nodes) + "[[access.rule]]\nusers = [65534]\nroles = [\"admin\"]\n",
            .listen = {"local://" + (dir / "local").string()}});
  std::optional<OtherUser> someone(std::in_place, 65534);
  LocalClient admin(dir / "local");
  someone.reset();
  CHECK(admin.call("resource.reload").errnum == 0);
  const RawResponse refused = admin.call("resource.reload", {{"path", "/etc/shadow"}});
  CHECK(refused.errnum == wire_errno::perm);
  CHECK(refused.text() == "resource.reload requires the role owner");
}

TEST_CASE("agents say hello again to a loaded R, and targets stay online meanwhile") {
  Loading cluster(std::string(eight_nodes) + "[monitor]\nmode = \"agents\"\n");
  NodeAgent first(cluster.daemon.uri(), "test0");
  NodeAgent second(cluster.daemon.uri(), "test1");
  first.expect_log("online as rank 0");
  second.expect_log("online as rank 1");
  WatchingScheduler(cluster.daemon.uri()).until_up({0, 1});
  REQUIRE(cluster.load(resources({"test2", "test1"})).status == 0);
  CHECK(cluster.status()["online"] == "1");
  second.expect_log("online as rank 1");
  cluster.drain("test1", "disk");
  REQUIRE(cluster.load(resources({"test1", "test0"})).status == 0);
  CHECK(cluster.status()["drain"].begin().key() == "0");
  second.expect_log("online as rank 0");
  // In the meantime the first agent had no rank, and has tried again.
  first.expect_log("online as rank 1");
  WatchingScheduler(cluster.daemon.uri()).until_up({1});
  CHECK(cluster.status()["online"] == "0-1");
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
