#include "world.hpp"

#include <algorithm>

#include "core/nodes/presence.hpp"

using namespace resourced::module;

namespace resourced::test {

using rset::ResourceSet;
using text::IdSet;

std::shared_ptr<const ResourceSet> make_inventory(std::string_view hosts,
                                                  const ResourceSet::Properties& properties) {
  text::Hostlist nodelist = text::Hostlist::parse(hosts);
  const IdSet all = IdSet::range(0, static_cast<IdSet::Id>(nodelist.size() - 1));
  auto inventory = std::make_shared<ResourceSet>(
      std::vector<rset::ResourceGroup>{{all, IdSet::range(0, 1), IdSet{0}}}, std::move(nodelist));
  for (const auto& [name, ranks] : properties) inventory->add_property(name, ranks);
  return inventory;
}

void World::start(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude) {
  module_ = std::make_unique<Module>();
  history_.clear();
  DefineCommand command;
  command.inventory = std::move(inventory);
  command.exclude = exclude;
  command.online = command.inventory->ranks();
  begin(command);
}

void World::restart(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude) {
  DefineCommand command;
  command.inventory = std::move(inventory);
  command.exclude = exclude;
  command.online = command.inventory->ranks();
  begin(command);
}

void World::start_with_agents(std::shared_ptr<const ResourceSet> inventory, const IdSet& exclude,
                              const nodes::MonitorSettings& settings) {
  DefineCommand command;
  command.inventory = std::move(inventory);
  command.exclude = exclude;
  begin(command);
  monitor_ = nodes::Monitor(settings);
}

void World::pass(double time) {
  for (auto next = monitor_.next_deadline(); next && to_number(*next) <= time;
       next = monitor_.next_deadline()) {
    now = std::max(now, to_number(*next));
    tick();
  }
  now = time;
  tick();
}

void World::tick() {
  const auto batch = monitor_.tick(steady_time(now));
  if (!batch) return;
  for (const Command& command : nodes::monitor_commands(*batch, *module_)) execute(command);
}

void World::begin(const DefineCommand& command) {
  for (const auto& [name, holder] : holders_) acquisition_.release(holder, {}, [](auto, const Delta&) {});
  holders_.clear();
  log_.clear();
  for (const Event& event : module_->start(command, wall_time(now))) apply_event(event);
  for (const auto& [key, ranks] : module_->drains().groups()) {
    DrainEvent drain{key.terms(), ranks, module_->inventory().hosts(ranks), Overwrite::nothing};
    log_.push_back({key.timestamp, std::move(drain), key.by});
  }
}

void World::execute(const Command& command) {
  for (const Event& event : module_->decide(command, wall_time(now))) apply_event(event);
}

void World::apply(const EventBody& body) { apply_event({wall_time(now), body}); }

void World::apply_event(const Event& event) {
  const Outcome outcome = module_->apply(event);
  log_.push_back(event);
  history_.push_back(event);
  acquisition_.announce(outcome.delta, module_->excluded(), teller());
}

Acquisition::Tell World::teller() {
  return [this](Acquisition::HolderId id, const Delta& delta) {
    for (const auto& [name, holder] : holders_) {
      if (holder == id) hear_(name, delta);
    }
  };
}

void World::divide(std::vector<Partition> partitions) {
  acquisition_.divide(std::move(partitions), module_->available(), teller());
}

std::pair<IdSet, IdSet> World::acquire(const std::string& scheduler,
                                       const std::optional<std::string>& partition) {
  const auto [resources, kept] = acquisition_.acquire(last_ + 1, partition, module_->acquirable());
  holders_[scheduler] = ++last_;
  return {resources, kept & module_->available()};
}

void World::release(const std::string& scheduler) {
  const Acquisition::HolderId holder = holders_.at(scheduler);
  holders_.erase(scheduler);
  acquisition_.release(holder, module_->available(), teller());
}

}  // namespace resourced::test
