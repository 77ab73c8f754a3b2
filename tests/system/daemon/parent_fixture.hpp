// An instance inside another one: a daemon that was allocated some hosts of another daemon, and waits for the
// messages between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace resourced::e2e {

/// An R as a parent hands it down: four cores per host.
inline std::string allocation(const std::string& ranks, const std::string& hosts) {
  return nlohmann::json{
      {"version", 1},
      {"execution",
       {{"R_lite", nlohmann::json::array({{{"rank", ranks}, {"children", {{"core", "0-3"}}}}})},
        {"nodelist", nlohmann::json::array({hosts})},
        {"nslots", 4},
        {"starttime", 0},
        {"expiration", 0}}}}
      .dump();
}

/// A daemon whose inventory is some hosts of another one.
struct Child {
  /// `keys` are further lines of [resource]. The parent at `uri` need not run yet.
  Child(const std::string& uri, const std::string& ranks, const std::string& hosts,
        const std::string& keys = "", const std::string& tables = "")
      : daemon(dir, {.config = config(uri, ranks, hosts, keys, tables)}) {}

  std::string config(const std::string& uri, const std::string& ranks, const std::string& hosts,
                     const std::string& keys = "", const std::string& tables = "") const {
    dir.write("R", allocation(ranks, hosts));
    return fmt::format("[resource]\npath = \"R\"\nparent-uri = \"{}\"\n{}\n{}", uri, keys, tables);
  }

  TempDir dir;
  Daemon daemon;
  Ctl ctl{daemon.uri()};
};

/// Follows the journal of a daemon.
struct Watcher {
  explicit Watcher(const std::string& uri)
      : client(uri),
        stream(client.send("resource.journal", nlohmann::json::object(), wire::flag_streaming)) {}
  /// Waits for the next event with this name, and returns its context.
  nlohmann::json next(const std::string& name) {
    while (true) {
      while (at < events.size()) {
        const nlohmann::json event = events[at++];
        if (event.at("name") == name) return event.at("context");
      }
      const nlohmann::json response = client.receive(stream).json();
      for (const nlohmann::json& event : response.at("events")) events.push_back(event);
    }
  }

  RawClient client;
  std::uint32_t stream;
  std::vector<nlohmann::json> events;
  std::size_t at = 0;
};

/// Waits until a daemon has started to follow its parent this many times.
inline void until_following(const Daemon& daemon, int times) {
  const auto count = [&] {
    int found = 0;
    const std::string log = daemon.log();
    constexpr std::string_view line = "following the enclosing instance at";
    for (auto at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++found;
    return found;
  };
  for (const Deadline deadline; count() < times;) {
    if (deadline.passed()) throw Timeout("the child does not follow its parent");
  }
}

}  // namespace resourced::e2e
