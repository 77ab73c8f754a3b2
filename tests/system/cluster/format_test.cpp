// A log in the real etcd that a later version has written: a daemon ends before it changes anything.
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

/// The first daemon leads.
struct LaterFormat {
  Etcd etcd;
  Node first{"a", etcd.toml()};
  Node second{name_after(first, "b"), etcd.toml()};
  int head = 0;

  LaterFormat() {
    until_serving(second.uri());
    client::Connection connection(first.uri());
    drain(connection, "1", "before");
    head = std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"}));
    client::Connection standby(second.uri());
    (void)status_after(standby, head);
  }
  [[nodiscard]] std::string next_key() const { return fmt::format("/resourced/log/{:020}", head + 1); }
  void put_next() const {
    etcd.control({"put", next_key(),
                  fmt::format("{{\"first\":{},\"epoch\":1,\"parts\":0,\"format\":2}}\n...\n", head + 1)});
  }
  void check_ended() {
    CHECK(second.process().wait(Deadline(std::chrono::seconds(60))) == 1);
    CHECK(second.log().find("resourced: the log in etcd has format 2, and this version reads formats up to 1 "
                            "only: upgrade this daemon\n") != std::string::npos);
  }
};

}  // namespace

TEST_SUITE_BEGIN("cluster format");

TEST_CASE_FIXTURE(LaterFormat,
                  "a standby ends at the first batch of a later format, and the leader goes on") {
  put_next();
  check_ended();
  // The next commit of the leader takes the place of the batch, to which the head was never moved.
  client::Connection connection(first.uri());
  drain(connection, "2", "after");
  second.start();
  first.kill(etcd);
  second.until_leading();
  client::Connection next(second.uri());
  CHECK(reasons(next) == std::vector<std::string>{"before", "after"});
}

TEST_CASE_FIXTURE(LaterFormat,
                  "a daemon does not lead a log of a later format, and keeps its store as it was") {
  second.terminate();
  first.terminate();
  put_next();
  etcd.control({"put", "/resourced/head", std::to_string(head + 1)});
  const std::string log = etcd.control({"get", "--prefix", "/resourced/log/"});
  second.start();
  check_ended();
  CHECK(etcd.control({"get", "/resourced/leader", "--keys-only"}).empty());
  CHECK(etcd.control({"get", "/resourced/head", "--print-value-only"}) == fmt::format("{}\n", head + 1));
  CHECK(etcd.control({"get", "--prefix", "/resourced/log/"}) == log);
  // Without the batch it has all that it had.
  etcd.control({"del", next_key()});
  etcd.control({"put", "/resourced/head", std::to_string(head)});
  second.start();
  second.until_leading();
  client::Connection next(second.uri());
  CHECK(reasons(next) == std::vector<std::string>{"before"});
}

TEST_SUITE_END();

}  // namespace resourced::e2e
