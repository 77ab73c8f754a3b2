// Operators' requests, and the exact texts of their errors.
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

const std::string two_excluded = std::string("[resource]\nexclude = \"6-7\"\n") + std::string(eight_nodes);

/// The drained ranks with their reasons.
json drained(const json& status) {
  json result = json::object();
  for (const auto& [targets, why] : status["drain"].items()) {
    for (const unsigned id : ids(targets)) result[std::to_string(id)] = why["reason"];
  }
  return result;
}

struct Step {
  const char* topic;
  json payload;
  std::uint32_t errnum = 0;
  /// The error text; empty if only the errno is checked.
  const char* text = "";
  /// A text that the error must contain.
  const char* names = "";
};

TEST_SUITE_BEGIN("operator");

TEST_CASE("a time that has not come yet, and a name that never comes, are refused") {
  const Cluster cluster;
  CHECK(cluster.ctl.run({"status", "--at", "+1h"}).err ==
        "resourcectl: at is in the future, of which nothing is known\n");
  CHECK(cluster.ctl.run({"drain", "--from", "2020-01-01", "test1", "x"}).err ==
        "resourcectl: the drain would begin in the past: leave the begin out to drain at once\n");
  CHECK(cluster.ctl.run({"drain", "--until", "1e300", "test1", "x"}).status == 2);
  CHECK(cluster.ctl.run({"drain", "TEST1", "x"}).err ==
        "resourcectl: unknown host: TEST1, did you mean test1?\n");
  CHECK(cluster.ctl.run({"acquire", "--until", "bogus"}).status == 2);
  CHECK(cluster.ctl.output({"drain", "-n"}).empty());
}

TEST_CASE("undrain takes those of its targets alone that a user has drained, or for a reason") {
  Cluster cluster;
  const std::string own = fmt::format("uid {}", ::geteuid());
  cluster.drain("0-1", "fan is slow");
  cluster.drain("2", "fan is lost");
  cluster.drain("3", "disk");
  cluster.ctl.done({"drain", "4"});
  CHECK(cluster.ctl.output({"undrain", "--by", own, "--reason", "fan*", "test[1-4,7]"}) ==
        "undrained 2 nodes: test[1-2]; test[3-4] drained otherwise\n");
  CHECK(drained(cluster.status()) == json{{"0", "fan is slow"}, {"3", "disk"}, {"4", ""}});
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = cluster.ctl.run(arguments);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(refused({"undrain", "--by", "uid 4200000000", "all"}) ==
        "resourcectl: none of test[0-7] is drained by uid 4200000000: resourcectl drain lists the drains\n");
  CHECK(
      refused({"undrain", "--by", own, "--reason", "disk", "0"}) ==
      fmt::format("resourcectl: none of test0 is drained by {} for a reason like \"disk\": resourcectl drain "
                  "lists the drains\n",
                  own));
  CHECK(cluster.ctl.output({"undrain", "--reason", "", "all"}) ==
        "undrained 1 node: test4; test[0,3] drained otherwise\n");
  const std::string listed = cluster.ctl.output({"drain", "-n", "-o", "{user}", "-i", "test3"});
  CHECK(
      cluster.ctl.output({"undrain", "--quiet", "--by", listed.substr(0, listed.size() - 1), "all"}).empty());
  CHECK(drained(cluster.status()).empty());
}

TEST_CASE("a command that follows ends when nobody reads its output any more") {
  const Cluster cluster;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"acquire"}, {"eventlog", "-F"}, {"status", "--watch"}, {"top"}}) {
    CAPTURE(arguments[0]);
    CHECK(cluster.ctl.start_piped(arguments, "head -c 20 >/dev/null")->finish().status == 0);
  }
  // The scheduler of the first command has released its resources.
  CHECK(cluster.ctl.run({"acquire", "--count", "1"}).status == 0);
}

TEST_CASE("drain and undrain, step by step") {
  constexpr const char* drain = "resource.drain";
  constexpr const char* undrain = "resource.undrain";
  const std::vector<Step> steps{
      {drain, {{"targets", "1"}, {"reason", "disk"}}},
      {drain, {{"targets", "1"}, {"reason", "x"}}, wire_errno::exist, "rank 1 already drained"},
      {drain, {{"targets", "1-3"}, {"reason", "x"}}, wire_errno::exist, "rank 1 already drained"},
      {drain, {{"targets", "test[2-3]"}, {"reason", "disk"}}},
      {drain, {{"targets", "0-4"}}, wire_errno::exist, "ranks 1-3 already drained"},
      {drain, {{"targets", "6"}}, wire_errno::inval, "rank 6 excluded"},
      {drain, {{"targets", "4,6-7"}}, wire_errno::inval, "ranks 6-7 excluded"},
      {drain, {{"targets", "3,6"}}, wire_errno::exist, "ranks 3,6 already drained or excluded"},
      {drain, {{"targets", ""}}, wire_errno::inval, "idset is empty"},
      {drain, {{"targets", "8"}}, wire_errno::inval, "idset is out of range"},
      {drain, {{"targets", "4-4000000000"}}, wire_errno::inval, "idset is out of range"},
      {drain, {{"targets", "test4,nosuch1"}}, wire_errno::inval, "", "nosuch1"},
      {drain, {{"targets", "test[4-"}}, wire_errno::inval},
      {drain, {{"targets", "4"}, {"mode", "sideways"}}, wire_errno::inval, "", "sideways"},
      {drain, {{"reason", "no targets"}}, wire_errno::proto},
      {drain, {{"targets", "4"}}},
      {drain, {{"targets", "4"}, {"reason", "a reason at last"}}},
      {undrain, {{"targets", "5"}}, wire_errno::exist, "rank 5 not drained"},
      {undrain, {{"targets", "0,4-5"}}, wire_errno::exist, "ranks 0,5 not drained"},
      {undrain, {{"targets", ""}}, wire_errno::inval, "idset is empty"},
      {undrain, {{"targets", "9"}}, wire_errno::inval, "idset is out of range"},
      {undrain, {{"targets", "nosuch2"}}, wire_errno::inval, "", "nosuch2"},
      {undrain, {{"targets", "4"}, {"mode", "sideways"}}, wire_errno::inval, "", "sideways"},
      {undrain, json::object(), wire_errno::proto},
      {undrain, {{"targets", "test2"}}},
      {undrain, {{"targets", "0,3"}, {"mode", "update"}}},
      {undrain, {{"targets", "0,3"}, {"mode", "overwrite"}}},
      {undrain, {{"targets", "0,3"}, {"mode", "force-overwrite"}}},
  };
  Cluster cluster(two_excluded);
  for (const Step& step : steps) {
    CAPTURE(step.topic);
    CAPTURE(step.payload.dump());
    const json before = cluster.status()["drain"];
    const RawResponse response = cluster.operator_client.call(step.topic, step.payload);
    CHECK(response.topic == step.topic);
    CHECK_FALSE(response.streaming());
    CHECK(response.errnum == step.errnum);
    if (*step.text != '\0') CHECK(response.text() == step.text);
    if (step.errnum != 0) {
      CHECK(response.text().find(step.names) != std::string::npos);
      CHECK(cluster.status()["drain"] == before);
    }
  }
  CHECK(drained(cluster.status()) == json{{"1", "disk"}, {"4", "a reason at last"}});
}

// Tests that control the clock check the new timestamp of force-overwrite.
TEST_CASE("modes decide what becomes of a reason") {
  Cluster cluster;
  cluster.drain("2", "first");
  const json before = cluster.status()["drain"]["2"];
  const auto again = [&](const char* mode, const char* reason) {
    const json payload{{"targets", "2"}, {"reason", reason}, {"mode", mode}};
    CHECK(cluster.operator_client.call("resource.drain", payload).errnum == 0);
    return cluster.status()["drain"]["2"];
  };
  CHECK(again("update", "second") == before);
  const json overwritten = again("overwrite", "third");
  CHECK(overwritten["reason"] == "third");
  CHECK(overwritten["timestamp"] == before["timestamp"]);
  const json forced = again("force-overwrite", "fourth");
  CHECK(forced["reason"] == "fourth");
  CHECK(forced["timestamp"] >= before["timestamp"]);
}

TEST_CASE("status says what operators know of every target") {
  Cluster cluster(two_excluded);
  cluster.drain("1-3", "disk");
  cluster.operator_client.call("resource.drain", {{"targets", "5"}});
  const json status = cluster.status();

  CHECK(status.size() == 8);
  CHECK(status["unchecked"] == "");
  CHECK(status["allocated"] == "");
  CHECK(status["R"]["execution"]["nodelist"] == json::parse(R"(["test[0-7]"])"));
  CHECK_FALSE(status["R"].contains("scheduling"));
  CHECK(status["online"] == "0-7");
  CHECK(status["offline"] == "");
  CHECK(status["exclude"] == "6-7");
  CHECK(status["torpid"] == "");
  REQUIRE(status["drain"].size() == 2);
  CHECK(status["drain"]["1-3"]["reason"] == "disk");
  CHECK(status["drain"]["1-3"]["timestamp"].is_number());
  CHECK(status["drain"]["5"]["reason"] == "");
}

TEST_CASE("sched-status is the scheduler's view") {
  const json empty = json::parse(
      R"({"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[]}})");
  Cluster cluster(two_excluded);
  json view = cluster.operator_client.call("resource.sched-status").json();
  CHECK(view.size() == 4);
  CHECK(view["reported"] == "");
  CHECK(view["all"]["execution"]["nodelist"] == json::parse(R"(["test[0-5]"])"));
  CHECK(view["allocated"] == empty);
  CHECK(view["down"] == empty);

  cluster.drain("2,4");
  view = cluster.operator_client.call("resource.sched-status").json();
  CHECK(view["down"]["execution"]["R_lite"] ==
        json::parse(R"([{"rank": "2,4", "children": {"core": "0-3"}}])"));
  CHECK(view["down"]["execution"]["nodelist"] == json::parse(R"(["test[2,4]"])"));
}

TEST_CASE("a target is free only while its scheduler reports what it allocates, else it is up") {
  Cluster cluster;
  cluster.drain("7");
  const auto list = [&] { return cluster.ctl.output({"list", "-n", "-o", "{state} {nnodes}"}); };
  const std::string unknown = "free 0\nup 7\nallocated 0\ndown 1\n";
  const std::string known = "free 7\nallocated 0\ndown 1\n";
  CHECK(list() == unknown);
  RawClient scheduler(cluster.daemon.uri());
  std::uint32_t stream = scheduler.acquire();
  scheduler.receive(stream);
  CHECK(list() == unknown);
  scheduler.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
  scheduler.settle();
  stream = scheduler.send("resource.acquire", {{"allocations", true}}, wire::flag_streaming);
  scheduler.receive(stream);
  CHECK(list() == known);
  scheduler.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
  scheduler.settle();
  CHECK(list() == unknown);
}

TEST_CASE("resource.get and config.get") {
  Cluster cluster;
  const json got = cluster.operator_client.call("resource.get").json();
  CHECK(got["method"] == "configuration");
  CHECK(got["R"]["execution"]["nodelist"] == json::parse(R"(["test[0-7]"])"));
  const json config = cluster.operator_client.call("config.get").json();
  CHECK(config["resource"]["config"][0]["hosts"] == "test[0-7]");
}

// Flux's command line uses the position of a host in this attribute as its rank.
TEST_CASE("attr.get tells the hosts in the order of their ranks, and no other attribute") {
  Cluster cluster;
  const auto get = [&](const json& payload) { return cluster.operator_client.call("attr.get", payload); };
  const json hosts{{"value", "test[0-7]"}, {"flags", 1}};
  CHECK(get({{"name", "hostlist"}}).json() == hosts);
  CHECK(get({{"name", "hostlist"}, {"more", 1}}).json() == hosts);
  // The other hosts keep their positions when a target leaves or is excluded.
  cluster.ctl.done({"shrink", "2"});
  CHECK(get({{"name", "hostlist"}}).json() == hosts);
  for (const char* name : {"size", "rank", "", "hostlist2"}) {
    const RawResponse unknown = get({{"name", name}});
    CHECK(unknown.errnum == wire_errno::noent);
    CHECK(unknown.text() == fmt::format("unknown attribute: \"{}\"", name));
  }
  for (const json& payload : {json::object(), json{{"name", 1}}, json{{"name", nullptr}}})
    CHECK(get(payload).errnum == wire_errno::proto);
  CHECK(cluster.operator_client.call("attr.get").errnum == wire_errno::proto);
}

TEST_CASE("a rank that is in no R has its place in attr.get, and one beyond every list is an error") {
  const TempDir dir;
  const auto configure = [&](const std::string& ranks) {
    dir.write("R.json",
              R"({"version":1,"execution":{"R_lite":[{"rank":")" + ranks +
                  R"(","children":{"core":"0"}}],"starttime":0,"expiration":0,"nodelist":["n[7-9]"]}})");
  };
  configure("2,5-6");
  Daemon daemon(dir, {.config = "[resource]\npath = \"R.json\"\n"});
  const auto get = [&] { return RawClient(daemon.uri()).call("attr.get", {{"name", "hostlist"}}); };
  CHECK(get().json()["value"] == "unknown-[0-1],n7,unknown-[3-4],n[8-9]");
  for (const auto& [ranks, is_in_range] : {std::pair{"0-1,1048575", true}, {"0-1,1048576", false}}) {
    daemon.kill();
    configure(ranks);
    daemon.start();
    const RawResponse answer = get();
    CHECK(answer.errnum == (is_in_range ? 0 : wire_errno::range));
    if (is_in_range) CHECK(answer.json()["value"] == "n[7-8],unknown-[2-1048574],n9");
  }
}

TEST_CASE("the journal: history, the sentinel, and then events as they come") {
  Cluster cluster;
  cluster.drain("1", "disk");
  RawClient client(cluster.daemon.uri());
  const auto stream = client.send("resource.journal", json::object(), wire::flag_streaming);
  bool defined = false;
  bool drained_before = false;
  while (true) {
    const json batch = client.receive(stream).json();
    if (batch["events"].empty()) break;
    for (const json& event : batch["events"]) {
      CHECK(event["timestamp"] > 0);
      if (event["name"] == "resource-define") {
        defined = true;
        CHECK(batch["R"]["version"] == 1);
      }
      if (event["name"] == "drain") {
        drained_before = true;
        CHECK(event["context"]["idset"] == "1");
        CHECK(event["context"]["nodelist"] == "test1");
        CHECK(event["context"]["reason"] == "disk");
      }
    }
  }
  CHECK(defined);
  CHECK(drained_before);

  cluster.undrain("1");
  const json live = client.receive(stream).json();
  REQUIRE(live["events"].size() == 1);
  CHECK(live["events"][0]["name"] == "undrain");
  CHECK(live["events"][0]["context"]["idset"] == "1");

  client.send("resource.journal-cancel", {{"matchtag", stream}}, wire::flag_noresponse);
  const RawResponse end = client.receive(stream);
  CHECK(end.errnum == wire_errno::nodata);
  CHECK(client.call("resource.journal").errnum == wire_errno::proto);
}

TEST_CASE("a disconnect ends a journal without a word") {
  Cluster cluster;
  RawClient client(cluster.daemon.uri());
  const auto stream = client.send("resource.journal", json::object(), wire::flag_streaming);
  while (!client.receive(stream).json()["events"].empty()) {
  }
  client.send_text("resource.disconnect", std::nullopt, wire::flag_noresponse);
  CHECK(client.settle().empty());
  cluster.drain("1");
  CHECK(client.settle().empty());
}

TEST_CASE("a reload takes effect as a whole, or not at all") {
  Cluster cluster;
  RawClient scheduler(cluster.daemon.uri());
  const std::uint32_t stream = scheduler.acquire();
  scheduler.receive(stream);

  cluster.daemon.configure(std::string("[resource]\nexclude = \"3\"\n") + std::string(eight_nodes));
  cluster.ctl.done({"reload"});
  CHECK(scheduler.receive(stream).json() == json{{"down", "3"}});
  CHECK(cluster.status()["exclude"] == "3");

  for (const char* bad :
       {"[resource]\nexclude = \"4\"\n[[resource.config]]\nhosts = \"test[0-9]\"\ncores = \"0-3\"\n",
        "[resource]\nexclude = \"4\"\nhosts = \n"}) {
    CAPTURE(bad);
    cluster.daemon.configure(bad);
    const Outcome refused = cluster.ctl.run({"reload"});
    CHECK(refused.status == 1);
    CHECK(refused.err.starts_with("resourcectl: "));
    CHECK(cluster.status()["exclude"] == "3");
  }
  CHECK(scheduler.settle().empty());

  // SIGHUP does the same as `resourcectl reload`.
  cluster.daemon.configure(eight_nodes);
  cluster.daemon.process().signal(SIGHUP);
  CHECK(scheduler.receive(stream).json() == json{{"up", "3"}});
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
