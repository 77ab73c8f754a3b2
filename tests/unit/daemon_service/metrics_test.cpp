// resource.metrics: the text, and the counts against a brute-force count of the module's states.
#include "proto/topics/metrics.hpp"

#include <map>
#include <random>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/constraint/query.hpp"
#include "daemon/service/histogram.hpp"
#include "daemon/service/metrics_text.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

/// The samples of an answer, as a map from `name{labels}` to value
std::map<std::string, std::string> samples(const std::string& text) {
  std::map<std::string, std::string> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t blank = line.rfind(' ');
    CHECK(all.emplace(line.substr(0, blank), line.substr(blank + 1)).second);
  }
  return all;
}

std::map<std::string, std::string> metrics(Stand& stand, proto::ClientId client,
                                           const json& payload = nullptr) {
  // An answer is cached for a second at most.
  stand.uptime += Seconds(2);
  const proto::Message answer = stand.call(client, "resource.metrics", payload);
  REQUIRE(answer.errnum() == 0);
  return samples(proto::topics::parse_metrics(answer.text()));
}

/// Compares the metrics with counts from the answer to resource.status.
void check_counts(Stand& stand, proto::ClientId client) {
  const json status = json::parse(stand.call(client, "resource.status").text());
  const auto set = [&](const char* key) { return text::IdSet::parse(status.at(key).get<std::string>()); };
  text::IdSet drained;
  for (const auto& [ranks, entry] : status.at("drain").items()) drained |= text::IdSet::parse(ranks);
  const text::IdSet all = stand.service->engine().module().inventory().ranks();
  const text::IdSet allocated = set("allocated");
  const std::map<std::string, text::IdSet> states{
      {"up", (set("online") & all) - drained - set("exclude") - set("torpid")},
      {"allocated", allocated},
      {"draining", drained & allocated},
      {"drained", drained - allocated},
      {"offline", set("offline")},
      {"torpid", set("torpid")},
      {"excluded", set("exclude")}};
  // Allocated cores by rank, from the answer to resource.allocations.
  std::map<text::IdSet::Id, std::size_t> held;
  const json listed = json::parse(stand.call(client, "resource.allocations").text());
  for (const json& allocation : listed.at("allocations")) {
    const auto resources = rset::ResourceSet::from_json(allocation.at("R"));
    for (const rset::ResourceGroup& group : resources.groups())
      group.ranks.for_each([&](text::IdSet::Id rank) { held[rank] += group.cores.count(); });
  }
  constexpr std::size_t cores_of_node = 4;
  const auto shown = metrics(stand, client);
  std::map<std::string, text::IdSet> parts{{"", all}};
  for (const module::Partition& partition : stand.service->engine().acquisition().partitions()) {
    parts[partition.name] = partition.targets;
    parts[""] -= partition.targets;
  }
  for (const auto& [name, part] : parts) {
    CAPTURE(name);
    CHECK(shown.at(fmt::format("resourced_nodes{{partition=\"{}\"}}", name)) ==
          fmt::format("{}", part.count()));
    for (const auto& [state, targets] : states) {
      CAPTURE(state);
      CHECK(shown.at(fmt::format("resourced_nodes_state{{state=\"{}\",partition=\"{}\"}}", state, name)) ==
            fmt::format("{}", (targets & part).count()));
      const bool is_allocated = state == "allocated";
      std::size_t cores = 0;
      (targets & part).for_each([&](text::IdSet::Id rank) {
        cores += is_allocated ? held[rank] : cores_of_node;
      });
      CHECK(shown.at(fmt::format("resourced_cores{{state=\"{}\",partition=\"{}\"}}", state, name)) ==
            fmt::format("{}", cores));
    }
  }
}

TEST_CASE("metrics: a log that is ahead of the clock says how far") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  CHECK(metrics(stand, admin).at("resourced_log_ahead_seconds") == "0");
  stand.now += 3600;
  (void)stand.call(admin, "resource.drain", {{"targets", "1"}});
  stand.now -= 3600;
  CHECK(metrics(stand, admin).at("resourced_log_ahead_seconds") == "3600");
  // Times of drains are those of the clock, although the log is ahead of it.
  (void)stand.call(admin, "resource.drain", {{"targets", "2"}, {"from", stand.now + 600}});
  CHECK(stand.call(admin, "resource.drain", {{"targets", "3"}, {"until", stand.now + 600}}).errnum() == 0);
  const json status = json::parse(stand.call(admin, "resource.status").text());
  CHECK(status["drain"].size() == 2);
  CHECK(status["scheduled"].contains("2"));
}

TEST_CASE("metrics: the counts are those of the states, after each of many random changes") {
  Stand stand;
  SUBCASE("without partitions") {}
  SUBCASE("with partitions that properties decide") {
    stand.partitions = {{"with_p", std::nullopt, constraint::parse_query("p")},
                        {"with_q", std::nullopt, constraint::parse_query("q&-p")}};
    stand.restart();
  }
  const proto::ClientId admin = stand.connect();
  std::mt19937 random(7);
  const auto targets = [&random] {
    const unsigned first = random() % 8;
    return fmt::format("{}-{}", first, first + random() % (8 - first));
  };
  const proto::ClientId scheduler = stand.connect();
  stand.request(scheduler, "resource.acquire", {{"allocations", true}}, streaming);
  stand.settle();
  const auto alloc = [&](int id) {
    const text::IdSet ranks = text::IdSet::parse(targets());
    const auto core = static_cast<text::IdSet::Id>(random() % 3);
    const rset::ResourceSet resources({{ranks, text::IdSet::range(core, core + 1), {}}},
                                      stand.service->engine().module().configured().hosts(ranks));
    (void)stand.call(scheduler, "resource.alloc",
                     {{"id", fmt::format("j{}", id)}, {"R", resources.to_json()}});
    while (!stand.silent(scheduler)) (void)stand.receive(scheduler);
  };
  check_counts(stand, admin);
  for (int i = 0; i < 300; ++i) {
    switch (random() % 6) {
      case 3:
        alloc(i);
        break;
      case 4: {
        json payload{{"id", fmt::format("j{}", i - 1 - static_cast<int>(random() % 12))}};
        if (random() % 2 == 0) payload["ranks"] = targets();
        (void)stand.call(scheduler, "resource.free", payload);
        while (!stand.silent(scheduler)) (void)stand.receive(scheduler);
        break;
      }
      case 0:
        (void)stand.call(admin, "resource.drain", {{"targets", targets()}, {"mode", "overwrite"}});
        break;
      case 1:
        (void)stand.call(admin, "resource.undrain", {{"targets", targets()}, {"mode", "force-overwrite"}});
        break;
      case 2:
        (void)stand.call(admin, "resource.monitor-force-down", {{"ranks", targets()}});
        break;
      default:
        if (random() % 20 == 0) (void)stand.call(admin, "resource.shrink", {{"targets", targets()}});
        (void)stand.call(admin, "resource.property",
                         {{"op", random() % 2 == 0 ? "add" : "remove"},
                          {"name", random() % 2 == 0 ? "p" : "q"},
                          {"targets", targets()}});
    }
    check_counts(stand, admin);
  }
}

TEST_CASE("metrics: transitions count targets, and the time of an unavailable node is that of its events") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  auto shown = metrics(stand, admin);
  for (const char* name : {"drain", "undrain", "offline", "torpid", "lively", "shrink"})
    CHECK(shown.at(fmt::format("resourced_node_transitions_total{{event=\"{}\"}}", name)) == "0");
  (void)stand.call(admin, "resource.drain", {{"targets", "1-3"}});
  shown = metrics(stand, admin);
  CHECK(shown.at("resourced_node_transitions_total{event=\"drain\"}") == "3");
  CHECK(shown.at("resourced_node_unavailable_seconds_count") == "0");
  (void)stand.call(admin, "resource.undrain", {{"targets", "1-2"}});
  shown = metrics(stand, admin);
  CHECK(shown.at("resourced_node_transitions_total{event=\"undrain\"}") == "2");
  CHECK(shown.at("resourced_node_unavailable_seconds_count") == "2");
  CHECK(shown.at("resourced_node_unavailable_seconds_bucket{le=\"+Inf\"}") == "2");
}

TEST_CASE("metrics: drained nodes are counted by the first word of their reasons") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  const auto drained = [&](std::string_view reason) -> std::string {
    const auto shown = metrics(stand, admin);
    const auto found = shown.find(fmt::format("resourced_nodes_drained{{reason=\"{}\"}}", reason));
    return found == shown.end() ? "" : found->second;
  };
  CHECK(drained("none") == "0");
  CHECK(drained("other") == "0");
  const auto drain = [&](const char* targets, const std::string& reason) {
    CHECK(
        stand.call(admin, "resource.drain", {{"targets", targets}, {"reason", reason}, {"mode", "overwrite"}})
            .errnum() == 0);
  };
  (void)stand.call(admin, "resource.drain", {{"targets", "0"}});
  drain("1-3", "GPU: ECC errors");
  drain("4", "gpu fell off the bus");
  drain("5", std::string(33, 'x'));
  CHECK(drained("none") == "1");
  CHECK(drained("gpu") == "4");
  CHECK(drained("other") == "1");

  drain("3", "fan");
  (void)stand.call(admin, "resource.undrain", {{"targets", "1"}});
  CHECK(drained("gpu") == "2");
  CHECK(drained("fan") == "1");

  SUBCASE("a target that leaves for good is not counted") {
    (void)stand.call(admin, "resource.shrink", {{"targets", "2"}});
    CHECK(drained("gpu") == "1");
  }
  SUBCASE("a restart counts them anew") {
    stand.restart();
    const proto::ClientId next = stand.connect();
    const auto shown = metrics(stand, next);
    CHECK(shown.at("resourced_nodes_drained{reason=\"gpu\"}") == "2");
    CHECK(shown.at("resourced_nodes_drained{reason=\"fan\"}") == "1");
  }
  SUBCASE("a class that is empty makes room for another, and no more have one at a time") {
    for (int i = 0; i < 40; ++i) drain("6", fmt::format("word{}", i));
    CHECK(drained("word39") == "1");
    CHECK(drained("word0").empty());
    std::size_t classes = 0;
    for (const auto& [name, value] : metrics(stand, admin))
      classes += name.starts_with("resourced_nodes_drained{") ? 1 : 0;
    CHECK(classes <= 31);
  }
}

TEST_CASE("metrics: a node is a sample on request only, and answers are kept for a while") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  const auto nodes = [](const std::map<std::string, std::string>& shown) {
    std::size_t count = 0;
    for (const auto& [name, value] : shown) count += name.starts_with("resourced_node_info{") ? 1 : 0;
    return count;
  };
  CHECK(nodes(metrics(stand, admin)) == 0);
  CHECK(nodes(metrics(stand, admin, {{"nodes", false}})) == 0);
  CHECK(nodes(metrics(stand, admin, {{"nodes", true}})) == 8);
  CHECK(stand.call(admin, "resource.metrics", {{"nodes", 1}}).errnum() == EPROTO);
  const auto answer = [&](const json& payload) {
    return stand.call(admin, "resource.metrics", payload).payload;
  };
  const proto::Payload with_nodes = answer({{"nodes", true}});
  const proto::Payload without = answer(nullptr);
  stand.uptime += Seconds(0.05);
  CHECK(answer(nullptr) == without);
  stand.uptime += Seconds(0.5);
  CHECK(answer(nullptr) != without);
  CHECK(answer({{"nodes", true}}) == with_nodes);
  stand.uptime += Seconds(0.5);
  CHECK(answer({{"nodes", true}}) != with_nodes);
}

TEST_CASE("metrics: requests by topic and outcome") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  (void)stand.call(admin, "resource.status");
  (void)stand.call(admin, "resource.drain", {{"targets", "99"}});
  const auto shown = metrics(stand, admin);
  CHECK(shown.at("resourced_requests_total{topic=\"resource.status\",outcome=\"succeeded\"}") == "1");
  CHECK(shown.at("resourced_requests_total{topic=\"resource.drain\",outcome=\"failed\"}") == "1");
}

TEST_CASE("metrics: values of labels and the payload have their escapes") {
  service::MetricsText text;
  text.begin("m", "gauge", "Help.");
  text.sample(0.5, {{"a", "x\"y\\z\nw"}, {"b", ""}});
  text.sample(-1);
  text.sample(1e15);
  CHECK(text.text() ==
        "# HELP m Help.\n# TYPE m gauge\nm{a=\"x\\\"y\\\\z\\nw\",b=\"\"} 0.5\nm -1\nm 1000000000000000\n");
  CHECK(proto::topics::parse_metrics(proto::topics::encode_metrics(text.text())) == text.text());
  CHECK(json::parse(proto::topics::encode_metrics(text.text())).at("text") == text.text());
}

TEST_CASE("metrics: a histogram counts a value at its bound, and adds up") {
  static constexpr std::array<double, 2> bounds{1, 10};
  service::Histogram histogram(bounds);
  for (const double value : {0.5, 1.0, 1.5, 10.0, 11.0}) histogram.add(value);
  service::MetricsText text;
  text.begin("h", "histogram", "Help.");
  text.sample(histogram);
  CHECK(samples(text.text()) == std::map<std::string, std::string>{{"h_bucket{le=\"1\"}", "2"},
                                                                   {"h_bucket{le=\"10\"}", "4"},
                                                                   {"h_bucket{le=\"+Inf\"}", "5"},
                                                                   {"h_sum", "24"},
                                                                   {"h_count", "5"}});
}

}  // namespace
}  // namespace resourced::daemon::test
