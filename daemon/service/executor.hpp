// Takes inputs through the engine and carries out their effects, in the order that engine::Effects states:
// the log, the journal, the outbox.
#pragma once

#include <optional>

#include "core/engine/engine.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/log/records.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/program.hpp"
#include "daemon/streams/outbox.hpp"

namespace resourced::daemon::service {

class Executor {
 public:
  class Listener {
   public:
    /// An event has been applied, and the log has been given it. The listener must not take a step.
    virtual void on_applied(Committed::Event event) = 0;
    /// An event goes to the journal, with the targets that it concerns. The listener must not take a step.
    virtual void on_logged(log::LoggedEvent event, text::IdSet ranks) = 0;
    /// The state or the health of nodes has changed. The log and the outbox have all of the step by then.
    virtual void on_changed() = 0;
    /// The engine has news for a node agent.
    virtual void on_agent(const nodes::AgentNews& news) = 0;
    /// Agents have reported the inventory. Called last; the listener may take a step.
    virtual void on_discovered(const rset::ResourceSet& inventory) = 0;
    /// A new inventory, whose ranks may be other targets, has replaced the former one.
    virtual void on_replaced() = 0;

   protected:
    ~Listener() = default;
  };
  Executor(log::EventLog& log, streams::Outbox& outbox, const Program& program, Listener& listener)
      : log_(log),
        outbox_(outbox),
        program_(program),
        listener_(listener),
        engine_(log.last_sequence(), log.last_timestamp()) {}

  /// Takes one input of this actor. Its events are applied when this returns, and durable once
  /// engine().applied() is committed. Returns a value for an engine::Acquire. Throws Error as
  /// engine::Engine::step() does, with nothing changed.
  std::optional<engine::Effects::Acquired> step(engine::Input input,
                                                std::optional<module::Actor> by = std::nullopt);

  /// Begins with an engine that has taken no step. `last` is the last event of the log.
  void begin(log::Sequence last, WallTime last_timestamp) { engine_ = engine::Engine(last, last_timestamp); }

  [[nodiscard]] const engine::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] engine::Now now() const { return {program_.wall_now(), program_.steady_now()}; }
  [[nodiscard]] const module::Module& module() const noexcept { return engine_.module(); }

 private:
  log::EventLog& log_;
  streams::Outbox& outbox_;
  const Program& program_;
  Listener& listener_;
  engine::Engine engine_;
  peers::RateLimit refusals_;
  peers::RateLimit gated_;
  peers::RateLimit unfit_;
  peers::RateLimit rivals_;
  peers::RateLimit ahead_;
};

}  // namespace resourced::daemon::service
