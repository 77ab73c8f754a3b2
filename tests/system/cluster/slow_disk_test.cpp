// A standby whose disk does not answer when it wins.
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cluster_node.hpp"
#include "shared_etcd.hpp"
#include "wire/deadline.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

/// The revision of etcd at which this daemon has won; 0 if it is not the leader. Both come from one answer of
/// etcd, as the leader may change between two.
std::int64_t won(const Etcd& etcd, const std::string& name) {
  std::istringstream fields(etcd.control({"get", "/resourced/leader", "-w", "fields"}));
  std::int64_t revision = 0;
  std::string leader;
  for (std::string line; std::getline(fields, line);) {
    if (const std::string key = "\"CreateRevision\" : "; line.starts_with(key)) {
      revision = std::stoll(line.substr(key.size()));
    } else if (const std::string value = "\"Value\" : "; line.starts_with(value)) {
      leader = json::parse(json::parse(line.substr(value.size())).get<std::string>()).at("name");
    }
  }
  return leader == name ? revision : 0;
}

std::int64_t until_won(const Etcd& etcd, const std::string& name) {
  for (const Deadline deadline(patience); !deadline.passed();) {
    if (const auto revision = won(etcd, name); revision != 0) return revision;
  }
  FAIL("no leader");
  return 0;
}

/// Two members; the second one has read an event of the first one that it cannot write.
struct Held {
  Held() {
    until_serving(second.uri());
    second.terminate();
    second.start({{"LD_PRELOAD", RESOURCED_HELD_DISK}, {"HELD_DISK", hold.string()}});
    until_following(second.uri());
    second.dir().write("hold", "");
    client::Connection connection(first.uri());
    drain(connection, "0", "before");
    first.kill(etcd);
  }
  void let_go() const { std::filesystem::remove(hold); }

  Etcd etcd;
  Node first{"a", etcd.toml()};
  Node second{name_after(first, "b"), etcd.toml()};
  std::filesystem::path hold = second.dir() / "hold";
};

}  // namespace

TEST_SUITE_BEGIN("cluster");

TEST_CASE_FIXTURE(Held,
                  "a standby that loses its lease before it has written the log follows again, and leads") {
  (void)until_won(etcd, "b");
  etcd.revoke_lease("b");
  let_go();
  second.until_leading();
  client::Connection again(second.uri());
  CHECK(reasons(again) == std::vector<std::string>{"before"});
}

TEST_CASE_FIXTURE(Held, "a standby that has won keeps its lease while it writes the log" * only_thorough()) {
  const auto revision = until_won(etcd, "b");
  const auto end = std::chrono::steady_clock::now() + 3 * std::chrono::seconds(usual_lease);
  while (std::chrono::steady_clock::now() < end) CHECK(won(etcd, "b") == revision);
  let_go();
  second.until_leading();
  CHECK(won(etcd, "b") == revision);
}

TEST_CASE_FIXTURE(Held, "a standby that has won gives the lease up if its disk does not write the log" *
                            only_thorough()) {
  const auto revision = until_won(etcd, "b");
  // Nobody else leads, so the lease is gone once the key has another revision, or none.
  for (const Deadline deadline(std::chrono::seconds(60)); !deadline.passed() && won(etcd, "b") == revision;)
    continue;
  REQUIRE(won(etcd, "b") != revision);
  CHECK(second.log().find("s: this daemon gives up its lease") != std::string::npos);
  // It follows again once the disk writes, and leads.
  let_go();
  second.until_leading();
  client::Connection again(second.uri());
  CHECK(reasons(again) == std::vector<std::string>{"before"});
}

TEST_SUITE_END();

}  // namespace resourced::e2e
