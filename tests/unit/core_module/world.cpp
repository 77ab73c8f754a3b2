#include "world.hpp"

#include <algorithm>

#include "core/module/monitor_commands.hpp"
#include "core/rset/builder.hpp"

namespace resourced::test {

std::shared_ptr<const ResourceSet> make_inventory(std::string_view hosts,
                                                  const ResourceSet::Properties& properties) {
  InventoryBuilder builder;
  builder.add(Hostlist::parse(hosts), IdSet::range(0, 1), IdSet{0}, {});
  auto inventory = std::make_shared<ResourceSet>(builder.finish());
  for (const auto& [name, ranks] : properties) inventory->add_property(name, ranks);
  return inventory;
}

void World::start(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude) {
  StartCommand command;
  command.inventory = std::move(inventory);
  command.exclude = exclude;
  command.online = command.inventory->ranks();
  begin(command);
}

void World::restart(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude) {
  StartCommand command;
  command.inventory = std::move(inventory);
  command.exclude = exclude;
  command.online = command.inventory->ranks();
  command.recorded = recorded();
  begin(command);
}

void World::start_with_agents(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude,
                              const MonitorSettings& settings) {
  StartCommand command;
  command.inventory = std::move(inventory);
  command.exclude = exclude;
  if (module_->defined()) command.recorded = recorded();
  begin(command);
  monitor_ = Monitor(settings);
}

void World::pass(double time) {
  for (auto next = monitor_.next_deadline(); next && *next <= time; next = monitor_.next_deadline()) {
    now = std::max(now, *next);
    tick();
  }
  now = time;
  tick();
}

void World::tick() {
  const auto batch = monitor_.tick(now);
  if (!batch) return;
  for (const Command& command : monitor_commands(*batch, *module_)) execute(command);
}

void World::begin(const StartCommand& command) {
  module_ = std::make_unique<Module>();
  for (const auto& [name, holder] : holders_) acquisition_.release(holder);
  holders_.clear();
  log_.clear();
  for (const auto& [event, recorded] : Module::start(command, now)) apply_event(event);
}

void World::execute(const Command& command) {
  for (const Event& event : module_->decide(command, now)) apply_event(event);
}

void World::apply(const EventBody& body) { apply_event({now, body}); }

void World::apply_event(const Event& event) {
  const Outcome outcome = module_->apply(event);
  log_.push_back(event);
  if (const auto* update = std::get_if<UpdateEvent>(&event.body)) {
    update->shrink_nodelist.for_each([&](std::string_view host) { shrunk_.emplace_back(host); });
    if (update->expiration) expiration_ = {*update->expiration, module_->configured_expiration()};
  }
  acquisition_.announce(outcome.delta, outcome.removed, module_->excluded(),
                        [&](Acquisition::HolderId id, const Delta& delta) {
                          for (const auto& [name, holder] : holders_) {
                            if (holder == id) hear_(name, delta);
                          }
                        });
}

std::pair<IdSet, IdSet> World::acquire(const std::string& scheduler,
                                       const std::optional<std::string>& partition) {
  const IdSet& targets = acquisition_.acquire(last_ + 1, partition, module_->acquirable());
  holders_[scheduler] = ++last_;
  return {targets, targets & module_->available()};
}

void World::release(const std::string& scheduler) {
  acquisition_.release(holders_.at(scheduler));
  holders_.erase(scheduler);
}

RecordedState World::recorded() const {
  RecordedState state;
  const ResourceSet& inventory = module_->inventory();
  for (const auto& [key, ranks] : module_->drains().groups()) {
    ranks.for_each([&, &drain = key](IdSet::Id rank) {
      state.drains.push_back({rank, inventory.host(rank), drain.timestamp, drain.reason});
    });
  }
  std::map<std::string, bool> names;
  for (const auto& [name, ranks] : inventory.properties()) names[name] = true;
  for (const auto& [name, ranks] : module_->configured_properties()) names[name] = true;
  for (const auto& [name, unused] : names) {
    for (const PropertyState& property : module_->property_states(name, inventory.ranks())) {
      if (property.difference == PropertyState::Difference::same) continue;
      property.ranks.for_each([&](IdSet::Id rank) {
        state.properties.push_back(
            {property.name, inventory.host(rank), property.difference == PropertyState::Difference::added});
      });
    }
  }
  state.shrunk = shrunk_;
  state.expiration = expiration_;
  return state;
}

}  // namespace resourced::test
