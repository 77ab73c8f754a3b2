// Daemons with an etcd whose keys were copied without their leases, or that lacks events of a store.
#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

}  // namespace

TEST_SUITE_BEGIN("cluster restored");

TEST_CASE("daemons start with a copy of etcd's keys that has no leases, and one of them leads") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  const Ctl ctl(first.uri());
  while (ctl.output({"cluster"}).find(second.uri()) == std::string::npos) continue;
  ctl.done({"drain", "1", "before"});
  const auto value = [&](const std::string& key) {
    return etcd.control({"get", "/resourced/" + key, "--print-value-only"});
  };
  const std::string keys[] = {"leader", "members/a", "members/b"};
  std::string values[] = {value(keys[0]), value(keys[1]), value(keys[2])};
  first.process().kill();
  second.process().kill();
  etcd.revoke_lease("a");
  etcd.revoke_lease("b");
  for (std::size_t i = 0; i < std::size(keys); ++i) {
    values[i].pop_back();
    etcd.control({"put", "/resourced/" + keys[i], values[i]});
  }
  first.start();
  second.start();
  const Ctl both_of(both(first, second));
  both_of.done({"drain", "2", "after"});
  CHECK(both_of.output({"drain"}).find("before") != std::string::npos);
  CHECK((first.log() + second.log()).find("etcd has the key leader without a lease") != std::string::npos);
  while (both_of.output({"cluster"}).find(second.uri()) == std::string::npos) continue;
  first.terminate();
  second.terminate();
}

TEST_CASE("while a store has more events than etcd, no daemon leads and each says so, until --cluster-init") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  client::Connection standby(second.uri());
  const auto head = [&] { return std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"})); };
  const int kept = head();
  (void)status_after(standby, kept);
  second.terminate();
  const Ctl leader(first.uri());
  leader.done({"drain", "1", "answered"});
  const int last = head();
  REQUIRE(last > kept);
  first.terminate();
  // As an older backup has it.
  etcd.control({"del", fmt::format("/resourced/log/{:020}", kept + 1), "/resourced/log0"});
  etcd.control({"put", "/resourced/head", std::to_string(kept)});
  first.start();
  CHECK(first.process().wait(Deadline(std::chrono::seconds(60))) == 1);
  CHECK(first.log().find("etcd was restored from an older backup; no daemon leads until") !=
        std::string::npos);
  second.start();
  const std::string obstacle = fmt::format(
      "no daemon leads: the store of a has events up to {}, and the log in etcd, which was restored from an "
      "older backup, up to {}",
      last, kept);
  until_logged(second, "standby, " + obstacle);
  client::Connection asked(second.uri());
  try {
    asked.call("resource.ready", json::object(), patience);
    FAIL("the standby is ready");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(obstacle) != std::string::npos);
  }
  second.terminate();
  etcd.control({"del", "--prefix", "/resourced/"});
  CHECK(first.run({"--cluster-init"}).status == 0);
  first.start();
  first.until_leading();
  CHECK(leader.output({"drain"}).find("answered") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace resourced::e2e
