// The store of a member after a crash, and stores whose events are not those of the log.
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "cluster_node.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

/// Keeps a number of requests under way until enough are answered.
class Load {
 public:
  explicit Load(const std::string& uri) : connection_(uri) {}

  void run(std::size_t answers, std::size_t most_under_way) {
    wanted_ = answered_ + answers;
    while (under_way_ < most_under_way) send();
    REQUIRE(connection_.run_for(patience));
  }
  void drain_out() {
    wanted_ = 0;
    if (under_way_ > 0) REQUIRE(connection_.run_for(patience));
  }

 private:
  void send() {
    ++under_way_;
    connection_.send(
        "resource.drain",
        {{"targets", "1"}, {"reason", fmt::format("r{}", answered_ + under_way_)}, {"mode", "overwrite"}},
        [this](const client::Response& response) {
          REQUIRE(response.ok());
          --under_way_;
          ++answered_;
          if (wanted_ == 0 ? under_way_ == 0 : answered_ == wanted_) connection_.stop();
          if (answered_ < wanted_) send();
        });
  }

  client::Connection connection_;
  std::size_t answered_ = 0;
  std::size_t under_way_ = 0;
  std::size_t wanted_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("cluster replica");

TEST_CASE("a standby that is killed under load goes on with what its disk has") {
  Etcd etcd;
  Node first("a", etcd.toml(), "", 10);
  first.until_leading();
  Node second("b", etcd.toml(), "", 10);
  Load load(first.uri());
  const auto kills = test::thorough<std::size_t>(8, 3);
  for (std::size_t kill = 0; kill < kills; ++kill) {
    load.run(200, 256);
    until_serving(second.uri());
    load.run(500 + 37 * kill, 256);
    second.process().kill();
    second.start();
  }
  load.drain_out();
  until_serving(second.uri());
  first.terminate();
  second.until_leading();
  client::Connection connection(second.uri());
  CHECK(reasons(connection).size() > kills * 500);
}

TEST_CASE("a store with other events than the log is refused, though the log is longer") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  {
    client::Connection connection(both(first, second));
    drain(connection, "0", "in the cluster");
    client::Connection standby(second.uri());
    (void)status_after(standby, std::stoi(etcd.control({"get", "/resourced/head", "--print-value-only"})));
  }
  // The second daemon leaves the cluster. The file with the cluster's name is put back below, as a crash
  // could leave it.
  second.terminate();
  const std::string identity = read_file(second.dir() / "state" / "resourced.cluster");
  const std::string configuration = read_file(second.dir() / "resourced.toml");
  second.dir().write("resourced.toml", configuration.substr(0, configuration.find("[cluster]")));
  second.start();
  second.until_leading();
  CHECK_FALSE(std::filesystem::exists(second.dir() / "state" / "resourced.cluster"));
  second.terminate();
  std::filesystem::create_directories(second.dir() / "state");
  second.dir().write("state/resourced.cluster", identity);
  second.dir().write("resourced.toml", configuration);
  client::Connection connection(first.uri());
  for (int i = 0; i < 20; ++i) drain(connection, "1", fmt::format("meanwhile {}", i));
  second.start();
  CHECK(second.process().wait(Deadline(std::chrono::seconds(30))) == 1);
  CHECK(second.log().find("in etcd is not the one of this store") != std::string::npos);
}

TEST_CASE("a member whose disk is full when it is to lead ends with an error, and another one leads") {
  Etcd etcd;
  Node first("a", etcd.toml());
  first.until_leading();
  {
    client::Connection connection(first.uri());
    for (int i = 0; i < 40; ++i) drain(connection, "1", std::string(100000, 'x'));
  }
  first.kill(etcd);
  Node second("b", etcd.toml());
  const rlimit limit{1 << 20, 1 << 20};
  REQUIRE(::prlimit(second.process().pid(), RLIMIT_FSIZE, &limit, nullptr) == 0);
  CHECK(second.process().wait(Deadline(std::chrono::seconds(30))) == 1);
  first.start();
  first.until_leading();
}

TEST_SUITE_END();

}  // namespace resourced::e2e
