#include "daemon/engine.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/recorder.hpp"

namespace resourced::daemon {

Engine::Engine(Store& store, Outbox& outbox, std::function<double()> now, Log log)
    : store_(store),
      outbox_(outbox),
      now_(std::move(now)),
      log_(std::move(log)),
      last_timestamp_(store.last_timestamp()),
      applied_(store.last_sequence()) {}

double Engine::next_timestamp() {
  last_timestamp_ = std::max(last_timestamp_, now_());
  return last_timestamp_;
}

Acquisition::Tell Engine::teller() {
  return [this](Acquisition::HolderId holder, Delta delta) {
    outbox_.push(applied_, Update{holder, std::move(delta)});
  };
}

void Engine::release(Acquisition::HolderId holder) {
  acquisition_.release(holder, module_.available(), teller());
}

Record Engine::apply(const Event& event) {
  const Outcome outcome = module_.apply(event);
  ++applied_;
  applied_at_ = event.timestamp;
  acquisition_.announce(outcome.delta, module_.excluded(), teller());
  if (removed_ && !outcome.delta.shrink.empty()) removed_(outcome.delta.shrink);
  Record record = make_record(applied_, event, outcome, module_);
  log_({applied_, event.timestamp, record.text, std::holds_alternative<DefineEvent>(event.body),
        record.resources},
       concerned_ranks(event.body));
  return record;
}

void Engine::start(const StartCommand& command, std::vector<PartitionRule> partitions) {
  partitions_ = std::move(partitions);
  const auto events = Module::start(command, next_timestamp());
  // Before anything is recorded, as overlapping partitions keep the daemon from starting.
  for (const auto& [event, recorded] : events) {
    if (const auto* define = std::get_if<DefineEvent>(&event.body)) {
      acquisition_.divide(divide_at_start(partitions_, *define), {}, teller());
    }
  }
  std::vector<Record> records;
  for (const auto& [event, recorded] : events) {
    if (recorded) {
      module_.apply(event);
    } else {
      records.push_back(apply(event));
    }
  }
  if (command.recorded.drains.size() != module_.drains().ranks().count())
    rewrite_drains(records.back(), module_);
  for (Record& record : records) store_.append(std::move(record));
}

std::vector<Partition> Engine::divided_after(const std::vector<Event>& events) const {
  ResourceSet inventory = module_.inventory();
  for (const Event& event : events) {
    if (const auto* update = std::get_if<UpdateEvent>(&event.body)) {
      for (const auto& [name, ranks] : update->property_add) inventory.add_property(name, ranks);
      for (const auto& [name, ranks] : update->property_remove) inventory.remove_property(name, ranks);
      if (!update->shrink.empty()) inventory.remove_ranks(update->shrink);
    } else if (const auto* define = std::get_if<DefineEvent>(&event.body)) {
      inventory = *define->inventory;
    }
  }
  return divide_inventory(partitions_, inventory);
}

void Engine::load(const LoadCommand& command, std::vector<PartitionRule> partitions) {
  const std::vector<Event> events = module_.decide(command, next_timestamp());
  std::vector<Partition> divided = divide_inventory(partitions, *command.inventory);
  partitions_ = std::move(partitions);
  for (const Event& event : events) store_.append(apply(event));
  acquisition_.divide(std::move(divided), module_.available(), teller());
}

void Engine::execute(const Command& command) {
  if (!module_.defined()) throw Error(EAGAIN, "the inventory is not known yet");
  const std::vector<Event> events = module_.decide(command, next_timestamp());
  const bool divides = !partitions_.empty() && std::ranges::any_of(events, [](const Event& event) {
    return std::holds_alternative<UpdateEvent>(event.body) || std::holds_alternative<DefineEvent>(event.body);
  });
  std::vector<Partition> partitions;
  if (divides) partitions = divided_after(events);
  for (const Event& event : events) store_.append(apply(event));
  if (divides) acquisition_.divide(std::move(partitions), module_.available(), teller());
}

}  // namespace resourced::daemon
