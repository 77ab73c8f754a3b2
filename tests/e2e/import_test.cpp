// Export and import as an operator moves a store: what changed at run time is there as it was.
#include <chrono>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("import");

TEST_CASE("what was changed at run time is so after export and import") {
  const std::string config =
      std::string(eight_nodes) + "[[resource.config]]\nhosts = \"test7\"\nproperties = [\"slow\"]\n";
  Cluster cluster{DaemonOptions{.config = config}};
  cluster.drain("1-3", "disk");
  cluster.ctl.done({"property", "add", "fast", "1-2"});
  cluster.ctl.done({"property", "add", "back", "4"});
  cluster.ctl.done({"property", "remove", "back", "4"});
  cluster.ctl.done({"property", "remove", "slow", "7"});
  cluster.ctl.done({"expiration", "set", "4102444800"});
  cluster.ctl.done({"shrink", "3"});
  cluster.daemon.kill();
  cluster.daemon.start();
  RawClient before(cluster.daemon.uri());
  const Ctl ctl(cluster.daemon.uri());
  ctl.done({"property", "add", "late", "5"});
  const json status = before.call("resource.status").json();
  REQUIRE(status["R"]["execution"]["expiration"] == 4102444800);
  REQUIRE(status["R"]["execution"]["properties"] == json{{"fast", "1-2"}, {"late", "5"}});
  const json of_host = history(before, {{"targets", "test5"}});

  TempDir dir;
  const Outcome imported = import_log(dir, config, dir.write("log", ctl.output({"eventlog", "--export"})));
  CHECK(imported.err == "");
  REQUIRE(imported.status == 0);
  const Daemon second(dir, {.config = config});
  RawClient after(second.uri());
  const json status_there = after.call("resource.status").json();
  CHECK(status_there["R"] == status["R"]);
  CHECK(status_there["drain"] == status["drain"]);
  const json of_host_there = history(after, {{"targets", "test5"}});
  REQUIRE(of_host_there.size() > of_host.size());
  for (std::size_t i = 0; i < of_host.size(); ++i) CHECK(of_host_there[i] == of_host[i]);
}

TEST_CASE("a log that is not whole is refused with its line") {
  TempDir dir;
  const std::string config(eight_nodes);
  const Outcome outcome =
      import_log(dir, config, dir.write("log", "{\"timestamp\":5,\"name\":\"truncate\"}\n"));
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("log:1: truncate: the log is not whole") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
