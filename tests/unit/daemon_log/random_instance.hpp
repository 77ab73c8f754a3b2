// Random histories of an instance.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::log {

/// An instance with random commands and restarts, each of which renumbers the hosts or omits some.
class RandomInstance {
 public:
  explicit RandomInstance(unsigned seed) : random_(seed) { restart(); }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      try {
        step();
      } catch (const Error&) {
        // Refused: no event.
      }
    }
  }

  [[nodiscard]] const std::string& log() const { return log_; }
  [[nodiscard]] const std::vector<engine::Record>& records() const { return records_; }
  [[nodiscard]] const module::State& state() const { return engine_.module().state(); }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  void restart() {
    // All targets of a host are present or none, so that the ones that left are known.
    std::vector<std::string> hosts;
    for (const auto& [host, count] :
         std::map<std::string, std::size_t>{{"a", 3}, {"b", 2}, {"c", 1}, {"d", 1}})
      if (below(4) != 0) hosts.insert(hosts.end(), count, host);
    if (hosts.empty()) hosts.emplace_back("c");
    std::ranges::shuffle(hosts, random_);
    const text::IdSet ranks = text::IdSet::range(0, static_cast<text::IdSet::Id>(hosts.size() - 1));
    text::Hostlist nodelist;
    for (const std::string& host : hosts) nodelist.append(host);
    module::DefineCommand start;
    start.inventory = std::make_shared<const rset::ResourceSet>(
        std::vector<rset::ResourceGroup>{{ranks, text::IdSet{0}, {}}}, std::move(nodelist));
    start.online = ranks;
    module::State before = state();
    engine_ = engine::Engine(engine_.applied(), engine_.applied_at());
    take(engine::Start{std::move(start), std::move(before)});
  }

  void step() {
    if (below(8) == 0) return restart();
    text::IdSet some{below(7)};
    some.insert(below(7));
    const std::string targets = some.encode();
    const auto mode = static_cast<module::DrainMode>(below(4));
    const std::string name = below(2) == 0 ? "p" : "q";
    switch (below(10)) {
      case 0:
        return take(module::ShrinkCommand{text::IdSet{below(7)}.encode()});
      case 1:
        return take(module::ExpirationCommand{wall_time(5000 + below(3))});
      case 2:
        return take(module::PropertyCommand{module::PropertyCommand::Op::remove, name, targets});
      case 3:
      case 4:
        return take(module::PropertyCommand{module::PropertyCommand::Op::add, name, targets});
      case 5:
        return take(module::UndrainCommand{targets, std::nullopt, mode});
      case 6:
        return take(module::MonitorCommand{some, {}, {}, {}});
      case 7:
        return take(module::ForgetCommand{std::string(1, "abcd"[below(4)])});
      default:
        return take(
            module::DrainCommand{{below(3) == 0 ? std::nullopt : std::optional("r" + name)}, targets, mode});
    }
  }

  void take(const engine::Input& input) {
    for (engine::Record& record : engine_.step(input, {wall_time(++now_), {}}).records) {
      log_ += proto::encode_event(record.event) + "\n";
      records_.push_back(std::move(record));
    }
  }

  std::mt19937 random_;
  double now_ = 0;
  engine::Engine engine_;
  std::string log_;
  std::vector<engine::Record> records_;
};

}  // namespace resourced::daemon::log
