// resourcectl report, compared with the event log of the same daemon: exact, also over a kill.
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

std::vector<json> lines(const std::string& text) {
  std::vector<json> read;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) read.push_back(json::parse(line));
  return read;
}

bool is_near(const json& seconds, double expected) {
  return std::abs(seconds.get<double>() - expected) < 1e-3;
}

TEST_SUITE_BEGIN("report");

TEST_CASE("times and outages of a node are those of its events, also over a kill") {
  Cluster cluster;
  cluster.drain("2", "fan");
  cluster.daemon.kill();
  cluster.daemon.start();
  cluster.undrain("2");
  cluster.drain("3", "disk");
  double drained = 0;
  double undrained = 0;
  double began = 0;
  double disk = 0;
  for (const json& event : lines(cluster.ctl.output({"eventlog", "--json"}))) {
    const double time = event["timestamp"];
    if (event["name"] == "restart" && began == 0) began = time;
    if (event["name"] == "drain") (event["context"]["reason"] == "fan" ? drained : disk) = time;
    if (event["name"] == "undrain") undrained = time;
  }
  const std::string end = fmt::format("{:.6f}", disk);
  const auto rows =
      lines(cluster.ctl.run({"report", "--since", "1", "--until", end, "--by", "host", "--json"}).out);
  REQUIRE(rows.size() == 8);
  // The node that was unavailable for longest comes first.
  const json& row = rows.front();
  CHECK(row["name"] == "test2");
  CHECK(row["since"] == began);
  CHECK(row["outages"] == 1);
  CHECK(is_near(row["time"], disk - began));
  CHECK(is_near(row["drained"], undrained - drained));
  CHECK(is_near(row["unavailable"], undrained - drained));
  CHECK(is_near(row["up"], disk - began - (undrained - drained)));
  CHECK(is_near(row["mttr"], undrained - drained));
  CHECK(is_near(row["mtbf"], row["up"]));
  CHECK(row["reasons"][0]["reason"] == "fan");

  const Outcome table = cluster.ctl.run({"report", "--since", "2d"});
  CHECK(table.status == 0);
  CHECK(table.out.starts_with("NODES"));
  CHECK(table.err.starts_with("resourcectl: counted from "));
  const Outcome csv = cluster.ctl.run({"report", "--since", "2d", "--by", "reason", "--csv"});
  CHECK(csv.out.find("\nfan,drain,") != std::string::npos);
  CHECK(csv.out.find("\ndisk,drain,") != std::string::npos);
  CHECK(cluster.ctl.run({"report", "--since", "+2d"}).err ==
        "resourcectl: since must be before until, and before now\n");
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
