#include "daemon/engine.hpp"

#include <utility>
#include <vector>

#include "daemon/recorder.hpp"

namespace resourced::daemon {

Engine::Engine(Store& store, Outbox& outbox, std::function<double()> now)
    : store_(store), outbox_(outbox), now_(std::move(now)), applied_(store.last_sequence()) {}

Record Engine::apply(const Event& event) {
  const Outcome outcome = module_.apply(event);
  ++applied_;
  acquisition_.announce(outcome.delta, outcome.removed, module_.excluded(),
                        [this](Acquisition::HolderId holder, Delta delta) {
                          outbox_.push(applied_, Update{holder, std::move(delta)});
                        });
  return make_record(applied_, event, outcome, module_);
}

void Engine::start(const StartCommand& command) {
  std::vector<Record> records;
  for (const auto& [event, recorded] : Module::start(command, now_())) {
    if (recorded) {
      module_.apply(event);
    } else {
      records.push_back(apply(event));
    }
  }
  if (!same_drains(command.recorded.drains, module_)) rewrite_drains(records.back(), module_);
  for (Record& record : records) store_.append(std::move(record));
}

void Engine::execute(const Command& command) {
  for (const Event& event : module_.decide(command, now_())) store_.append(apply(event));
}

}  // namespace resourced::daemon
