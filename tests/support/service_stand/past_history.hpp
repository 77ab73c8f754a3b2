// Random histories of a daemon with restarts, and its status after each change, for tests of the past.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/log/import.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/store.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {

using nlohmann::json;

// The keys that the past has, too.
inline json states_of(json status) {
  for (const char* key : {"unchecked", "returning", "last", "at"}) status.erase(key);
  // The order of the hosts that left is not a state.
  if (const auto shrunk = status.find("shrunk"); shrunk != status.end())
    *shrunk = text::Hostlist::parse(shrunk->get<std::string>()).size();
  return status;
}

struct Moment {
  double time = 0;
  json status;
  /// After a start of the daemon.
  bool is_start = false;
};

class History {
 public:
  explicit History(unsigned seed, std::string_view hosts = "a,a,b,c,d[0-3]") : stand(hosts), random_(seed) {
    begin();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      stand.now += pace * (1 + static_cast<double>(below(1000)) / 7);
      act();
      note();
    }
  }

  void begin() {
    owner = stand.connect();
    scheduler_ = stand.connect();
    stand.request(scheduler_, "resource.acquire", {{"allocations", true}}, proto::flag::streaming);
    stand.settle();
    note(true);
  }

  json status() { return states_of(*read(stand.call(owner, "resource.status"))); }

  // What was so at a time; nothing and an errno where it is not known.
  std::pair<json, std::uint32_t> at(double time) {
    stand.request(owner, "resource.status-at", {{"at", time}});
    while (stand.silent(owner)) stand.step();
    const proto::Message answer = stand.receive(owner);
    if (answer.errnum() != 0) return {nullptr, answer.errnum()};
    json payload = *read(answer);
    CHECK(payload["at"] == time);
    return {states_of(payload), 0};
  }

  /// Puts an imported log in the place of that of the daemon, which starts on it now.
  void begin_with_import(const std::string& log) {
    stand.store->stop();
    stand.service.reset();
    stand.store.reset();
    const std::string state = stand.dir.file("state");
    std::filesystem::remove_all(state);
    std::istringstream input(log);
    (void)log::import_events(input, "log", state, {});
    stand.store = std::make_unique<log::Store>(state);
    stand.restart();
    begin();
  }

  void check(const Moment& moment) {
    CAPTURE(moment.time);
    const auto [states, errnum] = at(moment.time);
    CHECK(errnum == 0);
    CHECK(states == moment.status);
  }

  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  Stand stand;
  proto::ClientId owner{};
  std::vector<Moment> moments;
  /// How much longer than a minute there is about between two changes.
  double pace = 1;

 private:
  static std::optional<json> read(const proto::Message& message) {
    REQUIRE(message.errnum() == 0);
    return json::parse(std::string_view(*message.payload).substr(0, message.payload->find('\0')));
  }

  void note(bool is_start = false) {
    while (!stand.silent(owner)) stand.receive(owner);
    moments.push_back({stand.now, status(), is_start});
  }
  // Refused ones are welcome.
  void ask(const char* topic, const json& payload) { (void)stand.call(owner, topic, payload); }

  void act() {
    const std::string target = fmt::format("{}-{}", below(4), 4 + below(4));
    const std::string one = fmt::format("{}", below(8));
    switch (below(17)) {
      case 0:
      case 1:
        return ask("resource.drain", {{"targets", below(2) == 0 ? one : target},
                                      {"reason", below(2) == 0 ? "fan" : "disk"},
                                      {"mode", std::array{"", "update", "overwrite"}.at(below(3))}});
      case 2:
        return ask("resource.drain", {{"targets", one}, {"until", stand.now + 300}, {"reason", "short"}});
      case 3:
        return ask("resource.drain", {{"targets", one}, {"from", stand.now + 200}, {"reason", "later"}});
      case 4:
      case 5:
        return ask("resource.undrain", {{"targets", below(2) == 0 ? one : target}, {"mode", "force"}});
      case 6:
        return ask("resource.property",
                   {{"op", below(2) == 0 ? "add" : "remove"}, {"name", "p"}, {"targets", one}});
      case 7:
        return ask("resource.expiration", {{"expiration", 1e6 + below(100)}});
      case 8:
        return ask("resource.monitor-force-down", {{"ranks", one}});
      case 9:
        if (below(8) != 0) return alloc();
        return ask("resource.shrink", {{"targets", one}});
      case 10:
        return alloc();
      case 11:
        return free();
      case 12:
        stand.service->step(engine::Tick{}, std::nullopt);
        return stand.settle();
      case 13:
        return ask("resource.unshrink", {{"targets", one}});
      case 14:
        return ask("resource.forget", {{"hosts", std::array{"a", "d[0-3]", "e", "f"}.at(below(4))}});
      case 15: {
        module::ReloadCommand reload;
        if (below(2) == 0) reload.exclude = text::IdSet::parse(one);
        stand.service->step(module::Command{std::move(reload)}, std::nullopt);
        return stand.settle();
      }
      default:
        if (below(6) != 0) return;
        // Other ranks, another order; some hosts are gone.
        static constexpr std::array inventories{"a,a,b,c,d[0-3]", "d[0-3],b,a,a,c", "b,c,d[0-3],e,f"};
        stand.restart(inventories.at(below(inventories.size())));
        return begin();
    }
  }

  void alloc() {
    const json status_now = status();
    const auto inventory = rset::ResourceSet::from_json(status_now["R"]);
    const auto rank = static_cast<text::IdSet::Id>(below(8));
    const unsigned core = below(4);
    if (!inventory.ranks().contains(rank)) return;
    const rset::ResourceSet wanted({{text::IdSet{rank}, text::IdSet{core}, {}}},
                                   inventory.hosts(text::IdSet{rank}));
    const std::string id = fmt::format("j{}", ++jobs_);
    if (stand.call(scheduler_, "resource.alloc", {{"id", id}, {"R", wanted.to_json()}}).errnum() == 0)
      ids_.push_back(id);
  }
  void free() {
    if (ids_.empty()) return;
    const auto chosen = ids_.begin() + below(static_cast<unsigned>(ids_.size()));
    (void)stand.call(scheduler_, "resource.free", {{"id", *chosen}});
    ids_.erase(chosen);
  }

  std::mt19937 random_;
  proto::ClientId scheduler_{};
  unsigned jobs_ = 0;
  std::vector<std::string> ids_;
};

inline std::int64_t number(const std::string& path, const char* query) {
  log::Database database(path);
  log::Statement statement(database, query);
  REQUIRE(statement.step());
  return statement.integer(0);
}

}  // namespace resourced::daemon::test
