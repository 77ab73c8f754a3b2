// Requests that a standby serves, and clients that know only one of the daemons.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "client/acquisition.hpp"
#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

/// Fetches this path with curl; returns the body followed by the status.
std::string fetched(const std::string& socket, const std::string& path) {
  Process curl({"/usr/bin/env", "curl", "-s", "-w", "%{http_code}", "--unix-socket", socket,
                "http://localhost" + path});
  return curl.finish().out;
}

/// A cluster whose first daemon leads.
struct Served {
  TempDir http;
  Etcd etcd;
  Node first{"a", etcd.toml(), site("a")};
  Node second{name_after(first, "b"), etcd.toml(), site("b")};

  [[nodiscard]] std::string socket(const std::string& name) const { return (http / name).string(); }
  [[nodiscard]] std::string site(const std::string& name) const {
    return fmt::format("[http]\nlisten = [\"unix://{}\"]\n", socket(name));
  }
  [[nodiscard]] int head() {
    return std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"}));
  }
};

/// Stops its connection at the first resources or at an error.
class FirstAnswer final : public client::AcquisitionObserver {
 public:
  explicit FirstAnswer(client::Connection& connection) : connection_(connection) {}
  void on_resources(const rset::ResourceSet& /*resources*/, const text::IdSet& available) override {
    up = available.encode();
    connection_.stop();
  }
  void on_error(const Error& error) override {
    refusal = error.what();
    connection_.stop();
  }
  std::string up;
  std::string refusal;

 private:
  client::Connection& connection_;
};

}  // namespace

TEST_SUITE_BEGIN("cluster standby");

TEST_CASE_FIXTURE(Served, "the status of a standby is that of the leader, as of the event that it names") {
  client::Connection leader(first.uri());
  drain(leader, "1", "before");
  drain(leader, "5", "other");
  leader.call("resource.drain", {{"targets", "6"}, {"reason", "fan"}, {"ticket", "HW-1"}}, patience);
  leader.call("resource.undrain", {{"targets", "5"}}, patience);
  json expected = leader.call("resource.status", json::object(), patience);
  until_serving(second.uri());
  client::Connection standby(second.uri());
  json found = status_after(standby, head());
  found.erase("sequence");
  expected.erase("unchecked");
  CHECK(found == expected);
  CHECK(found["drain"]["6"]["ticket"] == "HW-1");
  CHECK(events(standby) == events(leader));
  // After a restart the standby serves the state of its own store.
  second.terminate();
  second.start();
  until_serving(second.uri());
  client::Connection again(second.uri());
  found = again.call("resource.status", json::object(), patience);
  found.erase("sequence");
  CHECK(found == expected);
}

TEST_CASE_FIXTURE(Served, "the journal of a standby has an event as soon as its status has it") {
  until_serving(second.uri());
  client::Connection leader(first.uri());
  client::Connection standby(second.uri());
  for (std::size_t i = 1; i <= 50; ++i) {
    drain(leader, "1", fmt::format("change {}", i));
    (void)status_after(standby, head());
    CHECK(reasons(standby).size() == i);
  }
}

TEST_CASE_FIXTURE(
    Served,
    "the journal of a standby goes on after an event that it has, and names the leader for a later one") {
  until_serving(second.uri());
  client::Connection standby(second.uri());
  const int last = status_after(standby, head()).at("sequence");
  const auto first_answer = [&](int after) {
    std::string answer;
    const auto id = standby.send("resource.journal", {{"after", after}},
                                 [&](const client::Response& response) {
                                   answer = response.ok() ? std::string(response.text())
                                                          : std::to_string(response.error().errnum()) + " " +
                                                                response.error().what();
                                   standby.stop();
                                 },
                                 {.streaming = true});
    standby.run_for(patience);
    standby.forget(id);
    return answer;
  };
  CHECK(json::parse(first_answer(last)) == json{{"events", json::array()}, {"last", last}});
  CHECK(first_answer(last + 1) ==
        fmt::format(
            "{} this daemon does not lead its cluster: standby, a leads at {}; it does not have event {} "
            "yet",
            EHOSTUNREACH, first.uri(), last + 1));
}

TEST_CASE_FIXTURE(Served, "a command for the leader is refused with the leader's address") {
  const Ctl standby(second.uri());
  const std::string why =
      fmt::format("this daemon does not lead its cluster: standby, a leads at {}\n", first.uri());
  until_serving(second.uri());
  client::Connection connection(second.uri());
  (void)status_after(connection, head());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"drain", "1", "x"}, {"acquire"}, {"reload", "/R"}}) {
    CAPTURE(command.front());
    const Outcome refused = standby.run(command);
    CHECK(refused.status == 1);
    CHECK(refused.err.ends_with(why));
  }
  CHECK(standby.output({"cluster"}).starts_with("NAME ROLE "));
}

TEST_CASE_FIXTURE(Served, "a command that reads shows the same at the leader and at the standby") {
  const Ctl leader(first.uri());
  leader.done({"drain", "1", "bad"});
  leader.done({"property", "add", "fast", "2-3"});
  leader.done({"expiration", "set", "4102444800"});
  until_serving(second.uri());
  client::Connection connection(second.uri());
  (void)status_after(connection, head());
  const Ctl standby(second.uri());
  for (const std::vector<std::string>& command : {std::vector<std::string>{"status"},
                                                  {"drain"},
                                                  {"list"},
                                                  {"info"},
                                                  {"R", "show"},
                                                  {"property", "list"},
                                                  {"feasibility", "slot=4/core=2", "--constraint", "fast"},
                                                  {"eventlog"}}) {
    CAPTURE(command.front());
    CHECK(standby.output(command) == leader.output(command));
  }
  CHECK(standby.run({"feasibility", "slot=1/core=5"}).status == 1);
}

TEST_CASE_FIXTURE(Served, "HTTP tells a leader from a standby, and from one that has no majority") {
  const auto roles = [&](const std::string& name) {
    std::string found;
    const std::string metrics = fetched(socket(name), "/metrics");
    for (const char* role : {"leader", "standby", "no-majority"}) {
      if (metrics.find(fmt::format("resourced_cluster_role{{role=\"{}\"}} 1\n", role)) != std::string::npos)
        found += role;
    }
    return found;
  };
  const Deadline deadline(patience);
  const std::string follows = fmt::format("standby, a leads at {}\n200", first.uri());
  while (fetched(socket("b"), "/readyz") != follows && !deadline.passed()) continue;
  CHECK(fetched(socket("b"), "/readyz") == follows);
  CHECK(fetched(socket("a"), "/readyz").starts_with("leader of epoch "));
  CHECK(roles("a") == "leader");
  CHECK(roles("b") == "standby");
  CHECK(fetched(socket("b"), "/api/resource.status").starts_with("{\"sequence\":"));
  first.kill(etcd);
  second.until_leading();
  CHECK(fetched(socket("b"), "/readyz").starts_with("leader of epoch "));
  // Without etcd the daemon leads until its lease ends, which takes long.
  if (!test::thorough(true, false)) return;
  etcd.kill(0);
  while (roles("b") != "no-majority" && !deadline.passed()) continue;
  CHECK(roles("b") == "no-majority");
  CHECK(fetched(socket("b"), "/readyz").ends_with("503"));
}

TEST_CASE_FIXTURE(Served, "a scheduler that knows one daemon waits until that one leads") {
  until_serving(second.uri());
  client::Connection connection(second.uri());
  {
    FirstAnswer observer(connection);
    client::Acquisition acquisition(connection, observer);
    connection.run_for(patience);
    CHECK(observer.refusal.starts_with("this daemon does not lead its cluster: standby, "));
  }
  FirstAnswer observer(connection);
  client::AcquisitionOptions options;
  options.wait_for_daemon = true;
  client::Acquisition acquisition(connection, observer, options);
  first.terminate();
  connection.run_for(patience);
  CHECK(observer.refusal.empty());
  CHECK(observer.up == "0-7");
}

TEST_SUITE_END();

}  // namespace resourced::e2e
