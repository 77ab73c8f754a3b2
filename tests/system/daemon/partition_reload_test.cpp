// Reloads that change which targets a scheduler may acquire: their answer tells which targets wait for whom,
// and a scheduler that waits for a partition without targets is told so.
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

/// Four hosts of each of two entries. The properties of the second decide the partition `debug`.
std::string config_of(const std::string& tables, const std::string& second) {
  return tables +
         "[[resource.config]]\nhosts = \"test[0-3]\"\ncores = \"0-3\"\n"
         "[[resource.config]]\nhosts = \"test[4-7]\"\ncores = \"0-3\"\nproperties = [" +
         second + "]\n[[acquire.partition]]\nname = \"debug\"\nconstraint = \"debug\"\n";
}

json part(const char* targets, bool held, const char* waiting, const char* leaving) {
  return {{"targets", targets}, {"held", held}, {"waiting", waiting}, {"leaving", leaving}};
}

std::uint32_t acquire_of(RawClient& client, const json& payload) {
  return client.send("resource.acquire", payload, wire::flag_streaming);
}

TEST_SUITE_BEGIN("partition_reload");

TEST_CASE("a reload that moves targets between partitions says which wait for whom, as the status does") {
  Cluster cluster(config_of("", R"("debug")"));
  CHECK(cluster.operator_client.call("resource.reload").json() ==
        json{{"partitions", {{"debug", part("4-7", false, "", "")}, {"", part("0-3", false, "", "")}}}});
  RawClient debug(cluster.daemon.uri());
  CHECK(debug.receive(acquire_of(debug, {{"partition", "debug"}})).json()["up"] == "4-7");
  RawClient rest(cluster.daemon.uri());
  const std::uint32_t rest_stream = acquire_of(rest, json::object());
  CHECK(rest.receive(rest_stream).json()["up"] == "0-3");

  cluster.daemon.configure(config_of("", ""));
  const RawResponse moved = cluster.operator_client.call("resource.reload");
  const json expected{{"debug", part("", true, "", "4-7")}, {"", part("0-7", true, "4-7", "")}};
  CHECK(moved.json() == json{{"partitions", expected}});
  CHECK(cluster.status()["partitions"] == expected);
  const std::string told =
      "targets 4-7 wait to move from partition debug to the rest: the holder of partition debug must release "
      "them\n";
  CHECK(cluster.ctl.output({"reload"}) == "reloaded the configuration\n" + told);
  CHECK(cluster.ctl.output({"status"}).ends_with(told));

  // The holder of the rest has not asked for these targets: it gets them with its next acquire.
  debug.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
  const Deadline deadline;
  while (cluster.status()["partitions"]["debug"]["held"] == true) REQUIRE_FALSE(deadline.passed());
  CHECK(cluster.status()["partitions"][""] == part("0-7", true, "4-7", ""));
  CHECK(cluster.ctl.output({"reload"}) ==
        "reloaded the configuration\ntargets 4-7 wait for the holder of the rest to acquire again\n");
}

TEST_CASE("a reload that ends an exclusion says which targets wait, also without partitions") {
  const std::string nodes = "[[resource.config]]\nhosts = \"test[0-3]\"\ncores = \"0-3\"\n";
  Cluster cluster("[resource]\nexclude = \"1-2\"\n" + nodes);
  {
    Scheduler scheduler(cluster.daemon.uri());
    CHECK(scheduler.first["up"] == "0,3");
    CHECK_FALSE(cluster.status().contains("partitions"));
    CHECK(cluster.operator_client.call("resource.reload").payload.empty());
    cluster.daemon.configure(nodes);
    const json expected{{"", part("0-3", true, "1-2", "")}};
    CHECK(cluster.operator_client.call("resource.reload").json() == json{{"partitions", expected}});
    CHECK(cluster.status()["partitions"] == expected);
    const std::string told = "targets 1-2 wait for the holder of the resources to acquire again\n";
    CHECK(cluster.ctl.output({"status"}).ends_with(told));
    CHECK(cluster.ctl.output({"reload"}) == "reloaded the configuration\n" + told);
    CHECK(scheduler.client.settle().empty());
  }
  Scheduler next(cluster.daemon.uri());
  CHECK(next.first["up"] == "0-3");
  CHECK_FALSE(cluster.status().contains("partitions"));
  CHECK(cluster.ctl.output({"reload"}) == "reloaded the configuration\n");
}

TEST_CASE("a reload that takes the last targets of a partition ends the wait for it with its name") {
  Cluster cluster(config_of("", R"("debug", "fast")"));
  RawClient holder(cluster.daemon.uri());
  const std::uint32_t stream = acquire_of(holder, {{"partition", "debug"}});
  CHECK(holder.receive(stream).json()["up"] == "4-7");
  RawClient waiter(cluster.daemon.uri());
  const std::uint32_t waiting = acquire_of(waiter, {{"partition", "debug"}, {"wait", true}});

  cluster.daemon.configure(config_of("", R"("debug")"));
  CHECK(cluster.operator_client.call("resource.reload").errnum == 0);
  CHECK(holder.receive(stream).json() == json{{"property-remove", {{"fast", "4-7"}}}});
  CHECK(waiter.settle().empty());
  cluster.daemon.configure(config_of("", ""));
  CHECK(cluster.operator_client.call("resource.reload").errnum == 0);
  const RawResponse end = waiter.receive(waiting);
  CHECK(end.errnum == wire_errno::noent);
  CHECK(end.text() == "partition debug has no targets to wait for");
  CHECK(holder.receive(stream).json() == json{{"property-remove", {{"debug", "4-7"}}}});

  // The partition itself can be taken away only by a restart.
  std::string undivided = config_of("", "");
  undivided.resize(undivided.find("[[acquire.partition]]"));
  cluster.daemon.configure(undivided);
  const RawResponse refused = cluster.operator_client.call("resource.reload");
  CHECK(refused.errnum == wire_errno::inval);
  CHECK(refused.text().ends_with("acquire.partition: cannot change without a restart"));
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
