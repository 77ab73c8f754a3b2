// An engine with four nodes and their agents, for tests of health.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::engine::health_tests {

using nodes::HealthReturn;
using text::IdSet;

inline std::shared_ptr<const rset::ResourceSet> some_hosts(const char* hosts) {
  text::Hostlist nodelist = text::Hostlist::parse(hosts);
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(nodelist.size() - 1));
  return std::make_shared<const rset::ResourceSet>(
      std::vector<rset::ResourceGroup>{{ranks, IdSet{0}, IdSet{}}}, std::move(nodelist));
}

inline nodes::Settings health_settings(HealthReturn on_return, bool gate = false) {
  nodes::Settings settings;
  settings.monitor.coalesce = Seconds(0);
  settings.monitor.flap_count = 2;
  settings.monitor.flap_window = Seconds(600);
  settings.monitor.drain_after = Seconds(300);
  settings.health = {on_return, gate};
  settings.expect_all = true;
  return settings;
}

/// An engine with the nodes n0 to n3. Agent N speaks for rank N.
struct Ward {
  Engine engine;
  nodes::Settings settings;
  double now = 1000;

  explicit Ward(HealthReturn on_return, bool gate = false, std::vector<module::RecordedDrain> drains = {},
                const IdSet& exclude = {})
      : settings(health_settings(on_return, gate)) {
    (void)step(WatchNodes{settings});
    Start start;
    start.command.inventory = some_hosts("n[0-3]");
    start.command.exclude = exclude;
    start.state.absent.drains = std::move(drains);
    (void)step(start);
  }
  Effects step(const Input& input, std::optional<module::Actor> by = std::nullopt) {
    return engine.step(input, {wall_time(now), steady_time(now)}, std::move(by));
  }

  Effects hello(IdSet::Id rank, bool checks = true, const IdSet& cores = IdSet{0}) {
    const std::string host = "n" + std::to_string(rank);
    nodes::NodeReport report{host, host, cores, {}, {}};
    report.health = checks;
    if (const auto agent = agent_of_[rank]) (void)step(AgentEnd{agent, nodes::Nodes::End::lost});
    agent_of_[rank] = ++last_;
    Effects effects = step(AgentHello{last_, 1, report});
    (void)step(Tick{});
    return effects;
  }
  Effects check(IdSet::Id rank, std::int64_t status, const std::string& reason = "") {
    return step(AgentHealth{agent_of_[rank], {status, reason}});
  }
  void farewell(IdSet::Id rank) {
    (void)step(AgentEnd{std::exchange(agent_of_[rank], 0), nodes::Nodes::End::farewell});
    (void)step(Tick{});
  }
  void drain(const std::string& target, std::optional<std::string> reason,
             module::DrainMode mode = module::DrainMode::none) {
    (void)step(module::Command{module::DrainCommand{{std::move(reason)}, target, mode}}, module::ByUser{7});
  }
  void undrain(const std::string& target) {
    (void)step(module::Command{module::UndrainCommand{target, std::nullopt, module::DrainMode::none}});
  }
  /// Lets time pass, and takes the steps that become due.
  Effects pass(double seconds) {
    Effects all;
    const double end = now + seconds;
    while (engine.next_deadline() && to_number(*engine.next_deadline()) <= end) {
      now = std::max(now, to_number(*engine.next_deadline()));
      Effects effects = step(Tick{});
      all.without_checks.append(effects.without_checks);
    }
    now = end;
    return all;
  }

  [[nodiscard]] std::string reason(IdSet::Id rank) const {
    const auto* drain = engine.module().drains().find(rank);
    if (drain == nullptr) return "up";
    return drain->reason.value_or("no reason");
  }
  [[nodiscard]] std::optional<module::Actor> drained_by(IdSet::Id rank) const {
    return engine.module().drains().find(rank)->by;
  }
  [[nodiscard]] std::string online() const { return engine.module().online().encode(); }
  [[nodiscard]] std::string unchecked() const { return engine.nodes().health().unchecked().encode(); }

 private:
  nodes::AgentId agent_of_[4] = {};
  nodes::AgentId last_ = 0;
};

}  // namespace resourced::engine::health_tests
