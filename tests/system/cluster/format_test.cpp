// A log in the real etcd with a batch of another format: a daemon that reads it ends before it changes
// anything.
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster_node.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

constexpr int later = 3;
constexpr const char* is_later = "has format 3, and this version reads format 2 only: upgrade this daemon";
constexpr int former = 1;
constexpr const char* is_former =
    "was written by a version before 0.1.0, which this version does not read: give the cluster another "
    "prefix, "
    "or delete all keys below this one";

/// A cluster whose first daemon leads.
struct OtherFormat {
  Etcd etcd;
  Node first{"a", etcd.toml()};
  Node second{name_after(first, "b"), etcd.toml()};
  int head = 0;

  OtherFormat() {
    until_serving(second.uri());
    client::Connection connection(first.uri());
    drain(connection, "1", "before");
    head = std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"}));
    client::Connection standby(second.uri());
    (void)status_after(standby, head);
  }
  [[nodiscard]] std::string next_key() const { return fmt::format("/resourced/log/{:020}", head + 1); }
  void put_next(int format) const {
    etcd.control(
        {"put", next_key(),
         fmt::format("{{\"first\":{},\"epoch\":1,\"parts\":0,\"format\":{}}}\n...\n", head + 1, format)});
  }
  void check_ended(const std::string& why) {
    CHECK(second.process().wait(Deadline(std::chrono::seconds(60))) == 1);
    CHECK(second.log().find("resourced: the log in etcd " + why + "\n") != std::string::npos);
  }
};

}  // namespace

TEST_SUITE_BEGIN("cluster format");

TEST_CASE_FIXTURE(OtherFormat,
                  "a standby ends at the first batch of a later format, and the leader goes on") {
  put_next(later);
  check_ended(is_later);
  // The leader's next commit replaces the batch, as the head was never moved to it.
  client::Connection connection(first.uri());
  drain(connection, "2", "after");
  second.start();
  first.kill(etcd);
  second.until_leading();
  client::Connection next(second.uri());
  CHECK(reasons(next) == std::vector<std::string>{"before", "after"});
}

TEST_CASE_FIXTURE(OtherFormat,
                  "a daemon does not lead a log from before 0.1.0, and keeps its store as it was") {
  second.terminate();
  first.terminate();
  put_next(former);
  etcd.control({"put", "/resourced/head", std::to_string(head + 1)});
  const std::string log = etcd.control({"get", "--prefix", "/resourced/log/"});
  second.start();
  check_ended(is_former);
  CHECK(etcd.control({"get", "/resourced/leader", "--keys-only"}).empty());
  CHECK(etcd.control({"get", "/resourced/head", "--print-value-only"}) == fmt::format("{}\n", head + 1));
  CHECK(etcd.control({"get", "--prefix", "/resourced/log/"}) == log);
  // Without the batch, the daemon starts with all its events.
  etcd.control({"del", next_key()});
  etcd.control({"put", "/resourced/head", std::to_string(head)});
  second.start();
  second.until_leading();
  client::Connection next(second.uri());
  CHECK(reasons(next) == std::vector<std::string>{"before"});
}

TEST_SUITE_END();

}  // namespace resourced::e2e
