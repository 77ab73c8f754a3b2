#include "core/engine/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "core/invariant.hpp"

namespace resourced::engine {

using module::Command;
using module::Event;
using module::Partition;
using text::IdSet;

namespace {

bool is_of_nothing(const Event& event) {
  const auto* undrain = std::get_if<module::UndrainEvent>(&event.body);
  return undrain != nullptr && undrain->ranks.empty();
}

bool loses_targets(const Event& event) { return std::holds_alternative<module::LossEvent>(event.body); }

using Properties = rset::ResourceSet::Properties;

/// Adds to `out` the targets among `some` that have a property in `all` and not in `known`.
void add_difference(Properties& out, const Properties& all, const Properties& known,
                    const text::IdSet& some) {
  for (const auto& [name, ranks] : all) {
    text::IdSet difference = ranks & some;
    if (const auto found = known.find(name); found != known.end()) difference -= found->second;
    if (!difference.empty()) out[name] |= difference;
  }
}

}  // namespace

Effects Engine::step(Input input, Now now, std::optional<module::Actor> by) {
  const Occasion occasion{now, std::move(by)};
  Effects effects;
  const std::uint64_t health = nodes_.health().version();
  // A request for the ledger may have thousands of allocations, which are moved on and not copied.
  std::visit([&](auto& one) { take(std::move(one), occasion, effects); }, input);
  effects.health_changed = nodes_.health().version() != health;
  return effects;
}

module::Acquisition::Tell Engine::teller(Effects& effects) {
  return [this, &effects](HolderId holder, module::Delta delta) {
    effects.updates.push_back({applied_, holder, std::move(delta)});
  };
}

void Engine::apply(Event event, const Occasion& now, Effects& effects) {
  event.by = now.by;
  event.timestamp = std::max(event.timestamp, last_timestamp_);
  const std::vector<Former> former = changing(event.body);
  const module::Outcome outcome = module_.apply(event);
  // Holders are told that targets are up or down, so the available set must agree.
  RESOURCED_INVARIANT(module_.available().includes(outcome.delta.up));
  RESOURCED_INVARIANT(!module_.available().intersects(outcome.delta.down));
  // A target that left is not in the inventory any more; one that left for good has no drain either.
  RESOURCED_INVARIANT(!module_.inventory().ranks().intersects(outcome.delta.shrink));
  RESOURCED_INVARIANT(loses_targets(event) || !module_.drains().ranks().intersects(outcome.delta.shrink));
  ++applied_;
  last_timestamp_ = event.timestamp;
  // Find these holders before announce(), which takes the targets that leave from them.
  const std::set<HolderId> rescheduled =
      acquisition_.concerned_by(outcome.rescheduled, &module::Extensions::scheduled);
  acquisition_.announce(outcome.delta, module_.excluded(), teller(effects));
  for (const HolderId holder : rescheduled) {
    module::Delta delta;
    delta.scheduled = scheduled_for(acquisition_.resources_of(holder));
    effects.updates.push_back({applied_, holder, std::move(delta)});
  }
  announce_allocations(former, now, effects);
  if (!outcome.delta.shrink.empty())
    std::ranges::move(nodes_.forget(outcome.delta.shrink), std::back_inserter(effects.agents));
  effects.records.push_back(make_record(applied_, std::move(event), outcome, module_));
}

void Engine::set_rules(const std::vector<module::PartitionRule>& rules) {
  partitions_ = rules;
  rules_by_property_ = module::rules_by_property(partitions_);
}

void Engine::take(Start&& input, const Occasion& now, Effects& effects) {
  if (input.brokers) return begin(*input.brokers, std::move(input.state), now, effects);
  module::Module next(std::move(input.state));
  std::vector<Event> events = next.start(input.command, now.wall);
  // Partitions are divided before any event is applied, as overlapping ones refuse the start.
  for (const Event& event : events) {
    if (const auto* define = std::get_if<module::DefineEvent>(&event.body))
      acquisition_.divide(divide_at_start(input.command.partitions, *define), {}, teller(effects));
  }
  module_ = std::move(next);
  set_rules(input.command.partitions);
  ledger_rules_ = input.ledger;
  clock_.start(now.wall, now.steady);
  reservations_.begin(input.former_holders, now.steady);
  for (Event& event : events) apply(std::move(event), now, effects);
  carry_out(nodes_.begin(module_, now.steady, input.grace), now, effects);
}

void Engine::begin(const Brokers& brokers, module::State state, const Occasion& now, Effects& effects) {
  RESOURCED_INVARIANT(!brokers.hosts.empty() && acquisition_.holders() == 0);
  const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(brokers.hosts.size() - 1));
  const IdSet online = (brokers.online & ranks) | brokers.forced_online;
  RESOURCED_INVARIANT(brokers.drains.empty() || !has_state());
  if (!has_state()) module_ = module::Module(std::move(state));
  module::RestartEvent restart{ranks | brokers.forced_online, online, brokers.hosts, true, brokers.drains};
  apply({now.wall, std::move(restart)}, now, effects);
}

std::vector<Partition> Engine::divided_after(const std::vector<Event>& events,
                                             const std::vector<module::PartitionRule>& rules) const {
  rset::ResourceSet inventory = module_.inventory();
  for (const Event& event : events) fold_inventory(event.body, inventory);
  return divide_inventory(rules, inventory);
}

module::Acquisition::PartitionChanges Engine::changes_of_partitions(const std::vector<Event>& events) const {
  const auto is_update = [](const Event& event) { return updates_inventory(event.body); };
  const auto update = std::ranges::find_if(events, is_update);
  if (update == events.end()) return {};
  // A command makes one update at most.
  RESOURCED_INVARIANT(std::find_if(std::next(update), events.end(), is_update) == events.end());
  return module::partition_changes(partitions_, rules_by_property_, acquisition_, module_.inventory(),
                                   update->body);
}

void Engine::execute(const Command& command, const Occasion& now, Effects& effects) {
  require_targets();
  std::vector<Event> events = module_.decide(command, now.wall);
  if (const auto* undrain = std::get_if<module::UndrainCommand>(&command)) {
    if (!undrain->keeps_scheduled) check_matching(events);
    return apply_ends(std::move(events), now, effects);
  }
  // Partitions are divided before any event is applied, as overlapping ones refuse the command.
  const auto divides = [](const Event& event) {
    return std::holds_alternative<module::DefineEvent>(event.body);
  };
  const auto* definition = std::get_if<module::DefineCommand>(&command);
  const bool loads = definition != nullptr && !module_.has_brokers();
  const auto& rules = loads ? definition->partitions : partitions_;
  const bool defines = loads || (!rules.empty() && std::ranges::any_of(events, divides));
  std::vector<Partition> partitions;
  module::Acquisition::PartitionChanges changes;
  if (defines) partitions = divided_after(events, rules);
  if (!defines && !rules.empty()) changes = changes_of_partitions(events);
  if (loads) set_rules(rules);
  text::IdSet torpid;
  for (Event& event : events) {
    if (const auto* fell = std::get_if<module::TorpidEvent>(&event.body)) torpid |= fell->ranks;
    apply(std::move(event), now, effects);
  }
  // The torpid event of a target that comes online precedes its online event, so check after both.
  RESOURCED_INVARIANT((torpid - module_.online()).empty());
  if (defines) acquisition_.divide(std::move(partitions), module_.available(), teller(effects));
  if (!changes.empty()) acquisition_.move(changes, module_.available(), teller(effects));
  if (loads) carry_out(nodes_.begin_again(module_, now.steady), now, effects);
}

void Engine::execute_all(const std::vector<Command>& commands, const Occasion& now, Effects& effects) {
  for (const Command& command : commands) {
    try {
      execute(command, now, effects);
    } catch (const Error& error) {
      effects.refused.push_back(error);
    }
  }
}

void Engine::carry_out(nodes::Findings findings, const Occasion& now, Effects& effects) {
  execute_all(findings.commands, now, effects);
  std::ranges::move(findings.news, std::back_inserter(effects.agents));
  std::ranges::move(findings.unfit, std::back_inserter(effects.unfit));
  std::ranges::move(findings.rivalries, std::back_inserter(effects.rivalries));
  const IdSet down = findings.without_checks & module_.inventory().ranks();
  effects.without_checks.append(module_.inventory().hosts(down));
}

void Engine::take(Command&& command, const Occasion& now, Effects& effects) {
  if (auto* change = std::get_if<module::LedgerCommand>(&command))
    return change_ledger(std::move(*change), now, effects);
  const auto* reload = std::get_if<module::ReloadCommand>(&command);
  if (reload == nullptr) return execute(command, now, effects);
  // Targets that are no longer excluded are compared with the inventory now.
  module::ReloadCommand verified = *reload;
  std::vector<nodes::UnfitNode> unfit = nodes_.unfit_among(module_.excluded() - reload->exclude, module_);
  for (const nodes::UnfitNode& node : unfit) {
    verified.drains.push_back({text::IdSet::range(node.rank, node.rank), node.reason});
  }
  verified.returns = acquisition_.holders() == 0;
  if (verified.returns) verified.online = nodes_.returned(verified.online & module_.returning());
  execute(std::move(verified), now, effects);
  effects.unfit = std::move(unfit);
}

void Engine::take(const Acquire& input, const Occasion& now, Effects& effects) {
  const std::string name = input.partition.value_or("");
  // A partition that this daemon's configuration does not have is unknown, and not reserved for anybody.
  if (acquisition_.has(input.partition) && reservations_.against(name, now.by, now.steady))
    throw module::Acquisition::busy(name);
  const auto [resources, kept] = acquisition_.acquire(input.holder, input.partition, module_.acquirable(),
                                                      input.allocations, input.extensions);
  if (input.extensions.ledger) {
    announce_expired(now.wall, effects);
    // This holder learns of expired allocations from its first response.
    std::erase_if(effects.updates, [&](const Update& update) { return update.holder == input.holder; });
  }
  reservations_.end(name);
  effects.acquired = {resources, kept};
}

void Engine::take(const Resume& input, const Occasion& now, Effects& effects) {
  RESOURCED_INVARIANT(module_.defined());
  if (acquisition_.is_held("")) throw module::Acquisition::busy("");
  for (Event& event : module_.lose(input.up - module_.online(), now.wall))
    apply(std::move(event), now, effects);
  // The job manager of the instance reports the allocations of its scheduler.
  constexpr bool reports = true;
  const auto [resources, kept] = acquisition_.acquire(
      input.holder, std::nullopt, module_.acquirable() & input.resources, reports, input.extensions);
  if (input.muted) return acquisition_.mute(input.holder);
  const text::IdSet up = kept & module_.available();
  module::Delta delta;
  delta.up = up - input.up;
  delta.down = input.up - up;
  delta.shrink = input.resources - resources;
  if (module_.inventory().expiration() != input.expiration)
    delta.expiration = module_.inventory().expiration();
  const module::PropertyChanges changes = module_.property_changes();
  add_difference(delta.property_add, changes.added, input.properties.added, resources);
  add_difference(delta.property_add, input.properties.removed, changes.removed, resources);
  add_difference(delta.property_remove, changes.removed, input.properties.removed, resources);
  add_difference(delta.property_remove, input.properties.added, changes.added, resources);
  if (!delta.empty()) teller(effects)(input.holder, std::move(delta));
}

void Engine::take(const Release& input, const Occasion& /*now*/, Effects& effects) {
  acquisition_.release(input.holder, module_.available(), teller(effects));
}

void Engine::take(const Mute& /*input*/, const Occasion& /*now*/, Effects& /*effects*/) {
  acquisition_.mute();
}

module::ScheduledDrains Engine::scheduled_for(const IdSet& targets) const {
  return module_.scheduled_drains().groups_of(targets);
}

void Engine::take(const SetExpiration& input, const Occasion& now, Effects& effects) {
  execute(input.command, now, effects);
  if (!effects.records.empty()) own_expiration_set_ = now.wall;
}

void Engine::take(const WatchNodes& input, const Occasion& now, Effects& effects) {
  nodes_.watch(input.settings);
  if (module_.defined()) carry_out(nodes_.settle(module_, now.steady), now, effects);
}

void Engine::take(const Discover& input, const Occasion& now, Effects& /*effects*/) {
  nodes_.discover(input.settings, input.recorded, now.steady);
}

void Engine::take(const DiscoverWithout& input, const Occasion& now, Effects& effects) {
  nodes_.exclude(input.hosts);
  // The discovery may be complete now, as it waits for fewer agents.
  effects.discovered = nodes_.discovered(now.steady);
}

void Engine::take(const AgentHello& input, const Occasion& now, Effects& effects) {
  Occasion hello = now;
  hello.by = module::ByHost{input.report.hostname};
  carry_out(nodes_.hello(input.agent, {input.connection, input.origin}, input.report, module_, now.steady),
            hello, effects);
  // The inventory may be complete with the report of this agent.
  effects.discovered = nodes_.discovered(now.steady);
}

void Engine::take(const AgentBeat& input, const Occasion& now, Effects& /*effects*/) {
  nodes_.beat(input.agent, now.steady);
}

void Engine::take(const AgentHealth& input, const Occasion& now, Effects& effects) {
  Occasion report = now;
  if (const auto rank = nodes_.rank_of(input.agent))
    report.by = module::ByHost{module_.inventory().host(*rank)};
  carry_out(nodes_.health(input.agent, input.report, module_, now.steady), report, effects);
}

void Engine::take(const AgentEnd& input, const Occasion& now, Effects& /*effects*/) {
  nodes_.end(input.agent, input.end, now.steady);
}

void Engine::require_inventory() const {
  if (module_.defined()) return;
  const auto progress = nodes_.discovery_progress();
  throw Error(EAGAIN,
              fmt::format("the inventory is not known yet{}{}", progress ? ": " : "", progress.value_or("")));
}

void Engine::require_targets() const {
  if (!module_.has_targets()) require_inventory();
}

void Engine::take(const ForceDown& input, const Occasion& now, Effects& effects) {
  require_targets();
  if (!module_.addressable().ranks().includes(input.ranks)) throw Error(EINVAL, "idset is out of range");
  module::MonitorCommand command;
  command.offline = input.ranks & module_.online();
  nodes_.force_down(command.offline, now.steady);
  execute(std::move(command), now, effects);
}

void Engine::take(const Enclose& /*input*/, const Occasion& /*now*/, Effects& /*effects*/) {
  nodes_.enclose(module_);
}

void Engine::take(const ParentSays& input, const Occasion& now, Effects& effects) {
  nodes::ParentChange change = input.change;
  // An expiration that a client of this instance has set later overrides that of the enclosing instance.
  if (change.expiration_set <= own_expiration_set_) change.expiration.reset();
  execute_all(nodes_.told(change, module_), now, effects);
}

// An operator may return a node that is unhealthy, as a check may be wrong; nobody returns resources that are
// not there.
void Engine::check_matching(const std::vector<Event>& events) const {
  for (const Event& event : events) {
    const auto* end = std::get_if<module::UndrainEvent>(&event.body);
    if (end == nullptr) continue;
    const std::vector<nodes::UnfitNode> unfit = nodes_.mismatched_among(end->ranks, module_);
    if (unfit.empty()) continue;
    const nodes::UnfitNode& first = unfit.front();
    const std::string host = module_.inventory().host(first.rank);
    constexpr std::string_view way_out = "correct the inventory or relax [resource.verify]";
    if (unfit.size() == 1) {
      throw Error(EINVAL, fmt::format("{} does not match the inventory: {}; repair it, {}", host,
                                      first.reason, way_out));
    }
    IdSet ranks;
    for (const nodes::UnfitNode& node : unfit) ranks.insert(node.rank);
    throw Error(EINVAL, fmt::format("{} do not match the inventory, {}: {}; repair them, {}",
                                    module_.inventory().hosts(ranks).encode(), host, first.reason, way_out));
  }
}

// Drains unfit nodes before the drain of the others ends, so no scheduler sees them come up in between.
void Engine::keep_unfit_drained(module::UndrainEvent& end, const Occasion& now, Effects& effects) {
  std::vector<nodes::UnfitNode> unfit = nodes_.unfit_among(end.ranks, module_);
  for (const nodes::UnfitNode& node : unfit) {
    const IdSet rank = IdSet::range(node.rank, node.rank);
    end.ranks -= rank;
    Occasion report = now;
    report.by = module::ByHost{node.host};
    apply(
        {now.wall,
         module::DrainEvent{
             {node.reason}, rank, module_.inventory().hosts(rank), module::Overwrite::reason_and_timestamp}},
        report, effects);
  }
  if (!unfit.empty()) end.nodelist = module_.inventory().hosts(end.ranks);
  std::ranges::move(unfit, std::back_inserter(effects.unfit));
}

void Engine::apply_ends(std::vector<Event> events, const Occasion& now, Effects& effects) {
  for (Event& event : events) {
    if (auto* end = std::get_if<module::UndrainEvent>(&event.body); end != nullptr && end->keeps_scheduled)
      keep_unfit_drained(*end, now, effects);
    Occasion occasion = now;
    if (event.by) occasion.by = event.by;
    if (!is_of_nothing(event)) apply(std::move(event), occasion, effects);
  }
}

std::optional<SteadyTime> Engine::next_deadline() const {
  std::optional<SteadyTime> next = nodes_.next_deadline();
  if (ledger_rules_.free_expired && clock_.distrusted_until())
    next = std::min(next.value_or(SteadyTime::max()), *clock_.distrusted_until());
  return next;
}

std::optional<WallTime> Engine::next_due(WallTime now) const {
  const std::uint64_t version = module_.state_version() + module_.inventory_version();
  if (version != due_.version || (due_.next && *due_.next <= now)) due_ = {version, module_.next_due()};
  std::optional<WallTime> next = due_.next;
  const auto consider = [&next](std::optional<WallTime> time) {
    if (time) next = std::min(next.value_or(*time), *time);
  };
  if (frees_expired()) consider(module_.ledger().next_expiration({}));
  if (acquisition_.anyone_has(&module::Extensions::ledger)) {
    // The clock was set back: a Tick goes back with it.
    if (expired_told_ > now) return now;
    consider(module_.ledger().next_expiration(expired_told_));
  }
  return next;
}

void Engine::take(const Tick& /*input*/, const Occasion& now, Effects& effects) {
  effects.discovered = nodes_.discovered(now.steady);
  if (effects.discovered) return;
  // More drains than one step handles wait for the next Tick, for which the time has come already.
  module::DueDrains due = module_.due(now.wall);
  apply_ends(std::move(due.events), now, effects);
  module_.wait(due.waiting);
  announce_expired(now.wall, effects);
  clock_.look(now.wall, now.steady);
  if (frees_expired()) {
    for (Event& event : module_.free_expired(now.wall)) apply(std::move(event), now, effects);
  }
  carry_out(nodes_.tick(module_, now.steady, now.wall), now, effects);
}

}  // namespace resourced::engine
