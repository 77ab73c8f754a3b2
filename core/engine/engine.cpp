#include "core/engine/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/engine/recorder.hpp"
#include "core/error.hpp"
#include "core/invariant.hpp"

namespace resourced::engine {

Effects Engine::step(const Input& input, double now) {
  const double time = std::max(last_timestamp_, now);
  Effects effects;
  std::visit([&](const auto& one) { take(one, time, effects); }, input);
  return effects;
}

Acquisition::Tell Engine::teller(Effects& effects) {
  return [this, &effects](HolderId holder, Delta delta) {
    effects.updates.push_back({applied_, holder, std::move(delta)});
  };
}

void Engine::apply(Event event, Effects& effects) {
  RESOURCED_INVARIANT(event.timestamp >= last_timestamp_);
  const Outcome outcome = module_.apply(event);
  // The change that holders are told is the change of what is available.
  RESOURCED_INVARIANT(module_.available().includes(outcome.delta.up));
  RESOURCED_INVARIANT(!module_.available().intersects(outcome.delta.down));
  // A target that left for good has left the tables, too.
  RESOURCED_INVARIANT(!module_.inventory().ranks().intersects(outcome.delta.shrink));
  RESOURCED_INVARIANT(!module_.drains().ranks().intersects(outcome.delta.shrink));
  ++applied_;
  last_timestamp_ = event.timestamp;
  acquisition_.announce(outcome.delta, module_.excluded(), teller(effects));
  effects.removed |= outcome.delta.shrink;
  effects.records.push_back(make_record(applied_, std::move(event), outcome, module_));
}

void Engine::take(const Start& input, double time, Effects& effects) {
  auto events = Module::start(input.command, time);
  // Divided before any event is applied: overlapping partitions refuse the start.
  for (const auto& [event, recorded] : events) {
    if (const auto* define = std::get_if<DefineEvent>(&event.body)) {
      acquisition_.divide(divide_at_start(input.partitions, *define), {}, teller(effects));
    }
  }
  partitions_ = input.partitions;
  for (auto& [event, recorded] : events) {
    if (recorded) {
      module_.apply(event);
    } else {
      apply(std::move(event), effects);
    }
  }
  if (input.command.recorded.drains.size() != module_.drains().ranks().count())
    rewrite_drains(effects.records.back().changes, module_);
}

std::vector<Partition> Engine::divided_after(const std::vector<Event>& events) const {
  ResourceSet inventory = module_.inventory();
  for (const Event& event : events) fold_inventory(event.body, inventory);
  return divide_inventory(partitions_, inventory);
}

void Engine::take(const Load& input, double time, Effects& effects) {
  std::vector<Event> events = module_.decide(input.command, time);
  std::vector<Partition> divided = divide_inventory(input.partitions, *input.command.inventory);
  partitions_ = input.partitions;
  for (Event& event : events) apply(std::move(event), effects);
  acquisition_.divide(std::move(divided), module_.available(), teller(effects));
}

void Engine::take(const Command& command, double time, Effects& effects) {
  if (!module_.defined()) throw Error(EAGAIN, "the inventory is not known yet");
  std::vector<Event> events = module_.decide(command, time);
  const bool divides = !partitions_.empty() && std::ranges::any_of(events, [](const Event& event) {
    return std::holds_alternative<UpdateEvent>(event.body) || std::holds_alternative<DefineEvent>(event.body);
  });
  std::vector<Partition> partitions;
  if (divides) partitions = divided_after(events);
  for (Event& event : events) apply(std::move(event), effects);
  if (divides) acquisition_.divide(std::move(partitions), module_.available(), teller(effects));
}

void Engine::take(const Acquire& input, double /*time*/, Effects& effects) {
  const auto [resources, kept] = acquisition_.acquire(input.holder, input.partition, module_.acquirable());
  effects.acquired = {resources, kept};
}

void Engine::take(const Release& input, double /*time*/, Effects& effects) {
  acquisition_.release(input.holder, module_.available(), teller(effects));
}

void Engine::take(const Mute& /*input*/, double /*time*/, Effects& /*effects*/) { acquisition_.mute(); }

}  // namespace resourced::engine
