// Takes inputs through the engine and carries out their effects, in the order that engine::Effects states:
// the log, the journal, the outbox.
#pragma once

#include <functional>
#include <optional>

#include "core/engine/engine.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/log/records.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/streams/outbox.hpp"

namespace resourced::daemon::service {

class Executor {
 public:
  struct Listeners {
    /// An event that has been applied. Must not take a step.
    std::function<void(const engine::Record&)> applied;
    /// An event for the journal, and the targets that it concerns. Must not take a step.
    std::function<void(log::LoggedEvent, text::IdSet)> logged;
    /// Any event except the allocations and frees of a scheduler.
    std::function<void(const engine::Record&)> caused;
    /// The state, or the health of nodes, has changed. Called after the log and the outbox have the records
    /// and updates of the step.
    std::function<void()> changed;
    /// News for a node agent.
    std::function<void(const nodes::AgentNews&)> agent;
    /// Agents have reported the inventory. Called last, and may take a step.
    std::function<void(const rset::ResourceSet&)> discovered;
    /// Another inventory, whose ranks may be other targets, has taken the place of the former one.
    std::function<void()> replaced;
  };
  Executor(log::EventLog& log, streams::Outbox& outbox, std::function<engine::Now()> now, Listeners listeners)
      : log_(log),
        outbox_(outbox),
        now_(std::move(now)),
        listeners_(std::move(listeners)),
        engine_(log.last_sequence(), log.last_timestamp()) {}

  /// Takes one input, of this actor. Its events are applied when this returns, and durable once
  /// engine().applied() is committed. Returns a value for an engine::Acquire. Throws Error as
  /// engine::Engine::step(), with nothing changed.
  std::optional<engine::Effects::Acquired> step(const engine::Input& input,
                                                std::optional<module::Actor> by = std::nullopt);

  [[nodiscard]] const engine::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] engine::Now now() const { return now_(); }
  [[nodiscard]] const module::Module& module() const noexcept { return engine_.module(); }

 private:
  log::EventLog& log_;
  streams::Outbox& outbox_;
  std::function<engine::Now()> now_;
  Listeners listeners_;
  engine::Engine engine_;
  peers::RateLimit refusals_;
  peers::RateLimit gated_;
  peers::RateLimit unfit_;
  peers::RateLimit ahead_;
};

}  // namespace resourced::daemon::service
