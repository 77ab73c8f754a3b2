// The store of a member: what a crash leaves of it, and stores whose events are not those of the log.
#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster_node.hpp"
#include "harness/etcd.hpp"

namespace resourced::e2e {
namespace {

using test::Etcd;

/// Keeps requests under way until so many are answered.
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
  for (std::size_t kill = 0; kill < 8; ++kill) {
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
  CHECK(reasons(connection).size() > 4000);
}

TEST_SUITE_END();

}  // namespace resourced::e2e
