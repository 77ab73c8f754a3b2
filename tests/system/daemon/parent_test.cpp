// An instance inside another one: two or more daemons, each with schedulers of its own. Changes of hosts in
// the parent reach the child's scheduler, and the child works without its parent.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "parent_fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("parent");

TEST_CASE("the child has what was handed down, and both have schedulers") {
  Cluster parent;
  Child child(parent.daemon.uri(), "4-6", "test[4-6]");
  CHECK(child.ctl.output({"info"}) == "3 Nodes, 12 Cores, 0 GPUs\n");
  RawClient user(child.daemon.uri());
  const json got = user.call("resource.get").json();
  CHECK(got.at("method") == "job-info");
  CHECK_FALSE(got.at("R").at("execution").contains("nslots"));

  until_following(child.daemon, 1);
  Scheduler outer(parent.daemon.uri());
  Scheduler inner(child.daemon.uri());
  CHECK(outer.first.at("up") == "0-7");
  CHECK(inner.first.at("up") == "0-2");
  CHECK(inner.first.at("resources").at("execution").at("nodelist") == json::parse(R"(["test[4-6]"])"));

  SUBCASE("a drained host is down in the child, where nobody is drained") {
    parent.drain("5,7", "disk");
    CHECK(outer.next() == json{{"down", "5,7"}});
    CHECK(inner.next() == json{{"down", "1"}});
    const json status = user.call("resource.status").json();
    CHECK(status.at("offline") == "1");
    CHECK(status.at("drain") == json::object());
    parent.undrain("5,7");
    CHECK(outer.next() == json{{"up", "5,7"}});
    CHECK(inner.next() == json{{"up", "1"}});
    Watcher journal(child.daemon.uri());
    CHECK(journal.next("offline") == json{{"idset", "1"}});
    CHECK(journal.next("online") == json{{"idset", "1"}});
    for (const json& event : journal.events) CHECK(event.at("name") != "drain");
  }
  SUBCASE("a new expiration of the parent is one of the child") {
    parent.ctl.done({"expiration", "set", "4000000000"});
    CHECK(outer.next() == json{{"expiration", 4000000000.0}});
    CHECK(inner.next() == json{{"expiration", 4000000000.0}});
  }
  SUBCASE("what leaves the parent for good leaves the child") {
    CHECK(parent.operator_client.call("resource.shrink", {{"targets", "6-7"}}).errnum == 0);
    CHECK(outer.next() == json{{"down", "6-7"}, {"shrink", "6-7"}});
    CHECK(inner.next() == json{{"down", "2"}, {"shrink", "2"}});
  }
  SUBCASE("what the child drains is its own affair") {
    child.ctl.done({"drain", "test4", "mine"});
    CHECK(inner.next() == json{{"down", "0"}});
    parent.drain("4", "ours too");
    CHECK(outer.next() == json{{"down", "4"}});
    Watcher journal(child.daemon.uri());
    CHECK(journal.next("offline") == json{{"idset", "0"}});
    parent.undrain("4");
    CHECK(journal.next("online") == json{{"idset", "0"}});
    child.ctl.done({"undrain", "0"});
    CHECK(inner.next() == json{{"up", "0"}});
  }
}

TEST_CASE("the R may come by the environment, and follow a host order") {
  Cluster parent;
  const TempDir dir;
  const std::string r = allocation("4-6", "test[4-6]");
  const std::string file = dir.write("handed-down", r);
  for (const std::string& given : {r, file}) {
    const TempDir own;
    Daemon child(own, {.config = fmt::format("[resource]\nparent-uri = \"{}\"\nrerank = \"test[6,4-5]\"\n",
                                             parent.daemon.uri()),
                       .environment = {{"RESOURCED_PARENT_R", given}}});
    Scheduler inner(child.uri());
    CHECK(inner.first.at("resources").at("execution").at("nodelist") == json::parse(R"(["test[6,4-5]"])"));
    parent.drain("6");
    inner.until_up("1-2");
    parent.undrain("6");
    inner.until_up("0-2");
  }
  const auto refused = [&](const std::string& keys) {
    return Process(resourced_command({"--check", "--config", dir.write("c.toml", "[resource]\n" + keys)}))
        .finish()
        .err;
  };
  CHECK(refused("parent-uri = \"ipc:///x\"\n")
            .find("c.toml:2: resource.parent-uri: no R from the parent: neither "
                  "resource.path nor $RESOURCED_PARENT_R is set") != std::string::npos);
  CHECK(refused("path = \"handed-down\"\nparent-uri = \"mailto:x\"\n")
            .find("c.toml:3: resource.parent-uri: ") != std::string::npos);
}

TEST_CASE("the parent may be followed over its Unix socket, also when it comes back there") {
  const TempDir dir;
  const std::string local = "local://" + (dir / "local").string();
  Daemon parent(dir, {.listen = {"ipc://" + (dir / "bus").string(), local}});
  const Ctl ctl(parent.uri());
  const Child child(local, "4-6", "test[4-6]");
  Scheduler inner(child.daemon.uri());
  CHECK(inner.first.at("up") == "0-2");
  ctl.done({"drain", "test5", "disk"});
  CHECK(inner.next() == json{{"down", "1"}});
  parent.kill();
  parent.start();
  ctl.done({"undrain", "test5"});
  CHECK(inner.next() == json{{"up", "1"}});
}

TEST_CASE("a child that is there first waits for its parent while it serves") {
  const TempDir dir;
  const std::string uri = "ipc://" + (dir / "bus").string();
  Child child(uri, "4-6", "test[4-6]");
  Scheduler inner(child.daemon.uri());
  CHECK(inner.first.at("up") == "0-2");
  // Drained in an earlier run of the parent, so that the child learns it from the history.
  {
    Daemon parent(dir);
    RawClient(uri).call("resource.drain", {{"targets", "4"}});
    parent.kill();
  }
  Daemon parent(dir);
  inner.until_up("1-2");
}

TEST_CASE("an expiration that the child set later holds at a restart, until the parent sets another") {
  Cluster parent;
  Child child(parent.daemon.uri(), "4-6", "test[4-6]");
  {
    Scheduler inner(child.daemon.uri());
    parent.ctl.done({"expiration", "set", "4000000000"});
    CHECK(inner.next() == json{{"expiration", 4000000000.0}});
    child.ctl.done({"expiration", "set", "3900000000"});
    CHECK(inner.next() == json{{"expiration", 3900000000.0}});
  }
  CHECK(child.daemon.terminate() == 0);
  child.daemon.start();
  until_following(child.daemon, 2);
  Scheduler inner(child.daemon.uri());
  CHECK(inner.first.at("resources").at("execution").at("expiration") == 3900000000.0);
  CHECK(child.daemon.terminate() == 0);
  parent.ctl.done({"expiration", "set", "3800000000"});
  child.daemon.start();
  until_following(child.daemon, 3);
  Scheduler later(child.daemon.uri());
  CHECK(later.first.at("resources").at("execution").at("expiration") == 3800000000.0);
}

TEST_CASE(
    "of an expiration of the child and one of its parent the later holds, whenever the child hears of it") {
  Cluster parent;
  Child child(parent.daemon.uri(), "4-6", "test[4-6]");
  const auto watch = [&](bool watches) {
    child.daemon.configure(
        child.config(parent.daemon.uri(), "4-6", "test[4-6]", watches ? "" : "no-update-watch = true"));
  };
  // A read waits for the changes of its own connection, and so for what the parent said before them; the line
  // "following" comes before the commit.
  const auto expiration = [&] {
    RawClient client(child.daemon.uri());
    REQUIRE(client.call("resource.drain", {{"targets", "2"}, {"mode", "overwrite"}}).errnum == 0);
    return client.call("resource.status").json().at("R").at("execution").at("expiration").get<double>();
  };
  until_following(child.daemon, 1);
  child.ctl.done({"expiration", "set", "3900000000"});
  watch(false);
  child.daemon.hang_up();
  SUBCASE("the parent's is the later one, and the child has later events, at a restart") {
    parent.ctl.done({"expiration", "set", "3800000000"});
    child.ctl.done({"drain", "test4", "later than that"});
    CHECK(child.daemon.terminate() == 0);
    watch(true);
    child.daemon.start();
    until_following(child.daemon, 2);
    CHECK(expiration() == 3800000000.0);
  }
  SUBCASE("the parent's is the later one, and the child goes on") {
    parent.ctl.done({"expiration", "set", "3800000000"});
    watch(true);
    child.daemon.hang_up();
    until_following(child.daemon, 2);
    CHECK(expiration() == 3800000000.0);
  }
  SUBCASE("the child's is the later one") {
    parent.ctl.done({"expiration", "set", "3800000000"});
    child.ctl.done({"expiration", "set", "3850000000"});
    watch(true);
    child.daemon.hang_up();
    until_following(child.daemon, 2);
    CHECK(expiration() == 3850000000.0);
    CHECK(child.daemon.terminate() == 0);
    child.daemon.start();
    until_following(child.daemon, 3);
    CHECK(expiration() == 3850000000.0);
    // The parent sets the same expiration again.
    parent.ctl.done({"expiration", "set", "3700000000"});
    parent.ctl.done({"expiration", "set", "3800000000"});
    Scheduler inner(child.daemon.uri());
    while (expiration() != 3800000000.0) inner.next();
  }
}

TEST_CASE("a drain of a host that the parent lacked for a time is one for the child again") {
  TempDir dir;
  Daemon parent(dir);
  Child child(parent.uri(), "4-6", "test[4-6]");
  Scheduler inner(child.daemon.uri());
  CHECK(RawClient(parent.uri()).call("resource.drain", {{"targets", "5"}}).errnum == 0);
  inner.until_up("0,2");
  CHECK(child.daemon.terminate() == 0);
  for (const std::string hosts : {"test[0-4,6-7]", "test[0-7]"}) {
    CHECK(parent.terminate() == 0);
    parent.configure("[[resource.config]]\nhosts = \"" + hosts + "\"\ncores = \"0-3\"\n");
    parent.start();
  }
  REQUIRE(RawClient(parent.uri()).call("resource.status").json().at("drain").contains("5"));
  child.daemon.start();
  until_following(child.daemon, 2);
  Scheduler again(child.daemon.uri());
  again.until_up("0,2");
}

TEST_CASE("three deep: a drain at the top is down at the bottom, and nobody in between is needed to live") {
  Cluster top;
  Child middle(top.daemon.uri(), "2-6", "test[2-6]");
  Child bottom(middle.daemon.uri(), "2-4", "test[4-6]", "rerank = \"test[6,5,4]\"\nparent-settle = 0.05");
  Scheduler outer(middle.daemon.uri());
  Scheduler inner(bottom.daemon.uri());
  CHECK(outer.first.at("up") == "0-4");
  CHECK(inner.first.at("resources").at("execution").at("nodelist") == json::parse(R"(["test[6,5,4]"])"));

  top.drain("3-4");
  CHECK(outer.next() == json{{"down", "1-2"}});
  CHECK(inner.next() == json{{"down", "2"}});
  middle.ctl.done({"drain", "test6", "middle"});
  CHECK(outer.next() == json{{"down", "4"}});
  CHECK(inner.next() == json{{"down", "0"}});
  top.ctl.done({"expiration", "set", "4000000000"});
  CHECK(inner.next() == json{{"expiration", 4000000000.0}});
  top.undrain("3-4");
  CHECK(inner.next() == json{{"up", "2"}});

  top.daemon.kill();
  middle.ctl.done({"undrain", "test6"});
  CHECK(inner.next() == json{{"up", "0"}});
  middle.daemon.kill();
  CHECK(bottom.ctl.output({"info"}) == "3 Nodes, 12 Cores, 0 GPUs\n");
  middle.daemon.start();
  top.daemon.start();
  CHECK(RawClient(top.daemon.uri()).call("resource.drain", {{"targets", "5"}}).errnum == 0);
  inner.until_up("0,2");
}

TEST_CASE("a child that watches its own nodes has up what is online here and to be had there") {
  Cluster parent;
  Child child(parent.daemon.uri(), "4-6", "test[4-6]", "", "[monitor]\nmode = \"agents\"\ncoalesce = 0\n");
  Scheduler inner(child.daemon.uri());
  CHECK(inner.first.at("up") == "");
  const auto hello = [&](RawClient& agent, const std::string& host) {
    agent.send("resource.agent", {{"hostname", host}, {"R", json::parse(allocation("0", host))}},
               wire::flag_streaming);
  };
  RawClient first(child.daemon.uri());
  hello(first, "test4");
  CHECK(inner.next() == json{{"up", "0"}});
  parent.drain("4-5");
  CHECK(inner.next() == json{{"down", "0"}});
  // A target is up only if it is up in both instances.
  RawClient second(child.daemon.uri());
  hello(second, "test5");
  RawClient third(child.daemon.uri());
  hello(third, "test6");
  CHECK(inner.next() == json{{"up", "2"}});
  parent.undrain("4-5");
  inner.until_up("0-2");
}

TEST_CASE("no-update-watch leaves the parent alone, and all of this but the parent itself changes live") {
  Cluster parent;
  Cluster other;
  const auto config = [&](const Child& child, const std::string& uri, const std::string& keys) {
    return child.config(uri, "4-6", "test[4-6]", keys);
  };
  Child child(parent.daemon.uri(), "4-6", "test[4-6]", "no-update-watch = true");
  Scheduler inner(child.daemon.uri());
  parent.drain("4");
  CHECK(parent.operator_client.call("resource.stats-get").json().at("journal-consumers") == 0);
  CHECK(inner.client.settle().empty());

  child.daemon.configure(config(child, parent.daemon.uri(), ""));
  child.ctl.done({"reload"});
  CHECK(inner.next() == json{{"down", "0"}});
  // Another daemon with the same hosts replaces the parent.
  other.drain("6");
  child.daemon.configure(config(child, other.daemon.uri(), "parent-settle = \"1m\""));
  child.daemon.hang_up();
  inner.until_up("0-1");
  child.daemon.configure(config(child, other.daemon.uri(), "no-update-watch = true"));
  child.ctl.done({"reload"});
  CHECK(inner.next() == json{{"up", "2"}});

  const auto refused = [&](const std::string& text) {
    child.daemon.configure(text);
    return child.ctl.run({"reload"}).err;
  };
  CHECK(refused("[resource]\npath = \"R\"\n").find("resource.parent-uri: cannot change") !=
        std::string::npos);
  CHECK(
      refused(config(child, other.daemon.uri(), "rerank = \"test[6,5,4]\"")).find(":4: resource.rerank: ") !=
      std::string::npos);
  CHECK(refused(config(child, child.daemon.uri(), "")).find("this daemon itself listens there") !=
        std::string::npos);
  CHECK(refused(config(child, "tcp://127.0.0.1:1", "parent-key-file = \"nosuch.key\""))
            .find("resource.parent-key-file: ") != std::string::npos);
  child.dir.write("R", allocation("4-7", "test[4-7]"));
  CHECK(refused("[resource]\npath = \"R\"\nparent-uri = \"ipc:///x\"\n").find("resource.path: hosts ") !=
        std::string::npos);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
