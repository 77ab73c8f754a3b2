// An etcd whose database is full.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "harness/etcd.hpp"

namespace resourced::e2e {
namespace {

constexpr const char* alarm_text =
    "its database is full (NOSPACE alarm): compact and defragment it, or raise its quota, then run etcdctl "
    "alarm disarm";

std::size_t lines_in(const Node& node) {
  const std::string log = node.log();
  return static_cast<std::size_t>(std::ranges::count(log, '\n'));
}

/// Waits until the answer to resource.ready has this text.
void until_ready_says(
    const Node& node, const std::string& text, const std::function<void()>& meanwhile = [] {}) {
  const Deadline deadline(patience);
  std::string said;
  while (said.find(text) == std::string::npos && !deadline.passed()) {
    meanwhile();
    try {
      client::Connection connection(node.uri());
      said = connection.call("resource.ready", json::object(), patience).dump();
    } catch (const Error& error) {
      said = error.what();
    }
  }
  CAPTURE(said);
  CAPTURE(node.log());
  CHECK(said.find(text) != std::string::npos);
}

}  // namespace

TEST_SUITE_BEGIN("cluster full");

TEST_CASE("daemons of a full etcd name the alarm and the way out, in a few lines, and go on after it") {
  constexpr std::size_t quota = 4'000'000;
  test::Etcd etcd({.election = std::chrono::milliseconds(100), .quota = quota});
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  const std::string large(120'000, 'x');
  while (etcd.try_control({"put", "large", large}).status == 0) continue;
  const std::size_t before = lines_in(first) + lines_in(second);
  client::Connection leader(first.uri());
  bool is_drained = false;
  leader.send("resource.drain", {{"targets", "1"}, {"reason", "full"}, {"mode", "overwrite"}},
              [&](const client::Response& response) {
                CHECK(response.ok());
                is_drained = true;
                leader.stop();
              });
  const std::string refusal =
      std::string("etcd refuses requests: ") + etcd.urls().front() + ": " + alarm_text;
  for (const Deadline deadline(patience);
       first.log().find(refusal) == std::string::npos && !deadline.passed();)
    leader.run_for(client::Milliseconds(10));
  until_logged(first, refusal);
  // The log may have told of another request before the drain was sent.
  until_ready_says(first, alarm_text, [&] { leader.run_for(client::Milliseconds(10)); });
  // A daemon that starts now gets no lease.
  Node third("c", etcd.toml());
  until_ready_says(third, alarm_text);
  until_logged(third, alarm_text);
  leader.run_for(client::Milliseconds(1000));
  CHECK_FALSE(is_drained);
  CHECK(lines_in(first) + lines_in(second) - before <= 4);
  CHECK(lines_in(third) <= 8);

  const json status = json::parse(etcd.control({"endpoint", "status", "-w", "json"}));
  // Not only a promise: a defrag before the revisions are gone leaves the database full.
  etcd.control({"compact", "--physical",
                std::to_string(status.at(0).at("Status").at("header").at("revision").get<int>())});
  etcd.control({"defrag"});
  etcd.control({"alarm", "disarm"});
  leader.run_for(patience);
  CHECK(is_drained);
  until_ready_says(third, "standby, a leads at ");
}

TEST_SUITE_END();

}  // namespace resourced::e2e
