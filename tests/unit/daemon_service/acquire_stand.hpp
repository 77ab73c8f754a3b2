// A service with partitions, for the tests of schedulers that acquire them with extensions, turns and leases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "service_stand.hpp"

namespace resourced::daemon::test {

using nlohmann::json;

/// A service with two partitions and other targets.
struct AcquireStand : Stand {
  AcquireStand() {
    partitions.push_back({"batch", text::IdSet{0, 1}, {}});
    partitions.push_back({"night", text::IdSet{2, 3}, {}});
    restart();
  }
  std::uint32_t acquire(proto::ClientId client, const json& payload) {
    const std::uint32_t matchtag = request(client, "resource.acquire", payload, streaming);
    settle();
    return matchtag;
  }
  json alloc(proto::ClientId client, const std::string& id, const std::string& rank) {
    const json resources = {{"version", 1},
                            {"execution",
                             {{"R_lite", json::array({{{"rank", rank}, {"children", {{"core", "0"}}}}})},
                              {"nodelist", {"n" + rank}}}}};
    request(client, "resource.alloc", {{"id", id}, {"R", resources}});
    settle();
    const proto::Message answer = receive(client);
    CHECK(answer.errnum() == 0);
    return answer.text().empty() ? json() : json::parse(answer.text());
  }
  json waiting() {
    const json peers = json::parse(call(connect(), "resource.peers").text());
    return peers.value("waiting", json::array());
  }
  /// Advances the time to the next pause that the service requests.
  void next_pause() {
    REQUIRE_FALSE(later.empty());
    const auto [when, work] = std::move(later.front());
    later.pop_front();
    uptime = std::max(uptime, when);
    work();
    settle();
  }
};

}  // namespace resourced::daemon::test
