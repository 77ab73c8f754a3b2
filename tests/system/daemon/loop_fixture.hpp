// A daemon with 16,384 targets whose loop is measured (loop_test.cpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "fixture.hpp"
#include "harness/other_user.hpp"
#include "loop_payloads.hpp"
#include "wire/local_client.hpp"
#include "yardstick.hpp"

namespace resourced::e2e::loop_tests {

using nlohmann::json;

inline constexpr std::uint32_t someone = 61001;

/// How many times slower than a usual machine this one is now; 1 for a faster one. The speed of a virtual
/// machine changes from one moment to the next, so that each time needs a measurement of its own.
inline double slowness() {
  constexpr double usual = 0.125;
  constexpr double usual_of_new_memory = 0.5;
  return std::max({1.0, yardstick() / usual, yardstick_of_new_memory() / usual_of_new_memory});
}

inline std::string role_config(const std::string& role, const std::string& hosts, const std::string& cores) {
  return fmt::format(
      "[monitor]\nmode = \"agents\"\n[[access.rule]]\nusers = [{}]\nroles = [\"{}\"]\n"
      "[[resource.config]]\nhosts = \"{}\"\ncores = \"{}\"\ngpus = \"0-7\"\n",
      someone, role, hosts, cores);
}

struct Loop {
  explicit Loop(const std::string& role, const std::string& hosts = "n[0-16383]",
                const std::string& cores = "0-63", const std::string& more = "")
      : config(role_config(role, hosts, cores) + more) {
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  }

  [[nodiscard]] std::unique_ptr<LocalClient> client() const {
    const OtherUser user(someone);
    return std::make_unique<LocalClient>(dir / "local");
  }
  /// The longest hold of the loop since the last resource.stats-clear. A time of `bound` milliseconds or more
  /// is scaled to a usual machine, by the speed of this one at this moment.
  json longest_hold(double bound) {
    json hold = owner.call("resource.stats-get").json()["longest-hold"];
    const double measured = hold["ms"].get<double>();
    if (measured < bound) return hold;
    const double slower = slowness();
    hold["ms"] = measured / slower;
    hold["slowness"] = slower;
    return hold;
  }

  /// The longest hold of the loop while `work` runs: the shortest of several tries. Ends with the first one
  /// that is below the bound.
  template <class Work>
  json best(double bound, const Work& work, int tries = 60) {
    json least;
    for (int i = 0; i < tries; ++i) {
      REQUIRE(owner.call("resource.stats-clear").errnum == 0);
      work();
      const json hold = longest_hold(bound);
      if (least.is_null() || hold["ms"] < least["ms"]) least = hold;
      if (least["ms"] < bound) break;
    }
    return least;
  }

  /// Sends a request, and waits for its answer and for the work that it causes. Returns the errno of the
  /// answer.
  std::uint32_t ask(const Ask& ask) {
    const auto asker = client();
    return response_to(*asker, ask).errnum;
  }
  /// Like ask(), with the owner as the client; not for streams.
  std::uint32_t ask_as_owner(const Ask& ask) { return response_to(owner, ask).errnum; }

  RawResponse response_to(LocalClient& asker, const Ask& ask) {
    std::optional<std::string> payload;
    if (!ask.payload.empty()) payload = ask.payload + '\0';
    asker.send(local_frame(request_parts(ask.topic, 1, payload, ask.flags)));
    RawResponse response;
    if ((ask.flags & wire::flag_noresponse) == 0) response = asker.response();
    (void)owner.call("resource.ping");
    return response;
  }

  std::string config;
  TempDir dir;
  Daemon daemon{dir,
                {.config = config,
                 .listen = {"ipc://" + (dir / "bus").string(), "local://" + (dir / "local").string()}}};
  LocalClient owner{dir / "local"};
};

inline std::string targets_payload(const std::string& text, const std::string& more = "") {
  return R"({"targets":")" + text + "\"" + more + "}";
}

/// The payload of a resource.alloc that replaces the allocations of this one by equal ones.
inline std::string payload_to_replace(const std::string& alloc) {
  const json asked = json::parse(alloc);
  std::string frees;
  const auto add = [&](const json& allocation) {
    frees += (frees.empty() ? "" : ",") + json{{"id", allocation["id"]}}.dump();
  };
  if (asked.contains("id")) add(asked);
  for (const json& allocation : asked.value("allocations", json::array())) add(allocation);
  return alloc.substr(0, alloc.rfind('}')) + ",\"free\":[" + frees + "]}";
}

/// The payload of resource.free for the allocations of this resource.alloc.
inline std::string payload_to_free(const std::string& alloc) {
  const json asked = json::parse(alloc);
  if (asked.contains("id")) return json{{"id", asked["id"]}}.dump();
  json ids = json::array();
  for (const json& allocation : asked["allocations"]) ids.push_back(allocation["id"]);
  return json{{"ids", std::move(ids)}}.dump();
}

}  // namespace resourced::e2e::loop_tests
