// Decisions on drains: at once, at a later time, and with an end. The error texts are those that operators
// know from Flux's drain and undrain.
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/module/module.hpp"
#include "core/rset/targets.hpp"

namespace resourced::module {

using text::Hostlist;
using text::IdSet;

namespace {

std::string rank_phrase(const IdSet& ranks) {
  return fmt::format("{} {}", ranks.count() == 1 ? "rank" : "ranks", ranks.encode());
}

Overwrite overwrite_of(DrainMode mode) {
  switch (mode) {
    case DrainMode::overwrite:
      return Overwrite::reason;
    case DrainMode::force_overwrite:
      return Overwrite::reason_and_timestamp;
    case DrainMode::none:
    case DrainMode::update:
      break;
  }
  return Overwrite::nothing;
}

// Refuses the whole drain if any of its targets is excluded or already drained.
void check_drainable(const IdSet& targets, const IdSet& excluded, const IdSet& drained) {
  const IdSet both = excluded | drained;
  if (both.empty()) return;
  if (!excluded.empty() && !drained.empty()) {
    throw Error(EEXIST, fmt::format("{} already drained or excluded", rank_phrase(both & targets)));
  }
  if (!excluded.empty()) throw Error(EINVAL, fmt::format("{} excluded", rank_phrase(excluded)));
  throw Error(EEXIST, fmt::format("{} already drained", rank_phrase(drained)));
}

}  // namespace

IdSet Module::drain_targets(std::string_view text) const {
  if (!has_brokers()) return parse_targets(text, inventory_);
  rset::HostSearch search =
      rset::parse_known_targets(text, addressable_, defined_ ? recorded_inventory() : addressable_);
  if (search.unknown.empty()) return std::move(search.ranks);
  Hostlist unknown;
  for (const std::string& host : search.unknown) unknown.append(host);
  throw Error(EINVAL, fmt::format("invalid targets: invalid hosts: {}", unknown.encode()));
}

void Module::check_times(const DrainCommand& command, WallTime now) const {
  if (!command.from && !command.until) return;
  if (has_brokers()) throw Error(ENOSYS, "a drain in a Flux instance begins at once and has no end");
  if (command.until && *command.until <= std::max(now, command.from.value_or(now)))
    throw Error(EINVAL, "the drain would end before it begins");
}

std::vector<Event> Module::schedule(const DrainCommand& command, const IdSet& targets, WallTime now) const {
  check_drainable(targets, targets & exclude_, {});
  return {{now, ScheduleEvent{targets, addressable().hosts(targets), *command.from, command.until,
                              command.reason}}};
}

std::vector<Event> Module::decide_on(const DrainCommand& command, WallTime now) const {
  const IdSet targets = drain_targets(command.targets);
  check_times(command, now);
  if (command.from && *command.from > now) return schedule(command, targets, now);
  const IdSet in_the_way = command.mode == DrainMode::none ? targets & states_.drains.with_reason() : IdSet{};
  check_drainable(targets, targets & exclude_, in_the_way);

  // Targets whose entry would stay as it is are left out of the event. With brokers the event keeps them, as
  // in Flux: a rank that drains itself may be drained already, and the log still has its reason.
  IdSet changing = targets;
  const Overwrite overwrite = overwrite_of(command.mode);
  if (overwrite == Overwrite::nothing && !has_brokers()) {
    changing -= command.reason ? states_.drains.with_reason() : states_.drains.ranks();
  }
  DrainEvent drain{{}, {}, command.reason, overwrite, command.until};
  std::vector<Event> events;
  if (command.mode == DrainMode::update) events = take_over(targets, drain, now);
  if (changing.empty()) return events;
  drain.nodelist = addressable().hosts(changing);
  drain.ranks = std::move(changing);
  events.push_back({now, std::move(drain)});
  return events;
}

IdSet Module::drained_by_daemon(const IdSet& targets) const {
  IdSet drained;
  (targets & states_.drains.ranks() & inventory_.ranks()).for_each([&](IdSet::Id rank) {
    const DrainTable::Key& drain = *states_.drains.find(rank);
    if (drain.is_for_silence() || drain.is_for_health_of(inventory_.host(rank))) drained.insert(rank);
  });
  return drained;
}

std::vector<Event> Module::take_over(const IdSet& targets, const DrainEvent& drain, WallTime now) const {
  std::map<std::optional<std::string>, IdSet> by_reason;
  drained_by_daemon(targets).for_each([&](IdSet::Id rank) {
    by_reason[drain.reason ? drain.reason : states_.drains.find(rank)->reason].insert(rank);
  });
  std::vector<Event> events;
  for (auto& [reason, ranks] : by_reason) {
    DrainEvent own = drain;
    own.nodelist = inventory_.hosts(ranks);
    own.ranks = std::move(ranks);
    own.reason = reason;
    own.overwrite = Overwrite::reason;
    events.push_back({now, std::move(own)});
  }
  return events;
}

std::vector<Event> Module::decide_on(const UndrainCommand& command, WallTime now) const {
  const IdSet targets = drain_targets(command.targets);
  if (command.mode == DrainMode::none) {
    const IdSet scheduled = command.keeps_scheduled ? IdSet{} : states_.scheduled.ranks();
    if (const IdSet idle = targets - states_.drains.ranks() - scheduled; !idle.empty()) {
      throw Error(EEXIST, fmt::format("{} not drained", rank_phrase(idle)));
    }
  }
  std::vector<Event> events;
  IdSet cancelled = command.keeps_scheduled ? IdSet{} : targets & states_.scheduled.ranks();
  if (IdSet changing = targets & states_.drains.ranks(); !changing.empty()) {
    cancelled -= changing;
    Hostlist hosts = addressable().hosts(changing);
    events.push_back({now, UndrainEvent{std::move(changing), std::move(hosts), command.reason,
                                        overwrite_of(command.mode), command.keeps_scheduled}});
  }
  if (!cancelled.empty()) {
    Hostlist hosts = addressable().hosts(cancelled);
    events.push_back({now, CancelEvent{std::move(cancelled), std::move(hosts)}});
  }
  return events;
}

std::vector<Event> Module::due(WallTime now, std::size_t most) const {
  std::vector<Event> events;
  IdSet drained = states_.drains.ranks();
  for (const auto& [end, key] : states_.drains.ends()) {
    if (end > now || events.size() >= most) break;
    const IdSet& ranks = states_.drains.groups().at(*key);
    drained -= ranks;
    events.push_back(
        {now, UndrainEvent{ranks, inventory_.hosts(ranks), std::nullopt, Overwrite::nothing, true}});
  }
  for (const auto& [key, ranks] : states_.scheduled.groups()) {
    if (key.timestamp > now || events.size() >= most) break;
    const bool is_over = key.until && *key.until <= now;
    // Those of operators stay as they are; those of the daemon become this one, as it would end them.
    const IdSet taken_over = is_over ? IdSet{} : drained_by_daemon((ranks & drained) - exclude_);
    IdSet begun = is_over ? IdSet{} : ranks - exclude_ - drained;
    IdSet left_out = ranks - begun - taken_over;
    DrainEvent drain{{}, {}, key.reason, Overwrite::nothing, key.until, true};
    for (Event& event : take_over(taken_over, drain, now)) {
      event.by = key.by;
      events.push_back(std::move(event));
    }
    if (!left_out.empty()) {
      Hostlist hosts = inventory_.hosts(left_out);
      events.push_back({now, CancelEvent{std::move(left_out), std::move(hosts)}});
    }
    if (begun.empty()) continue;
    drain.nodelist = inventory_.hosts(begun);
    drain.ranks = std::move(begun);
    events.push_back({now, std::move(drain), key.by});
  }
  return events;
}

std::optional<WallTime> Module::next_due() const {
  std::optional<WallTime> next;
  if (const auto& ends = states_.drains.ends(); !ends.empty()) next = ends.begin()->first;
  if (const auto& scheduled = states_.scheduled.groups(); !scheduled.empty()) {
    const WallTime begin = scheduled.begin()->first.timestamp;
    next = next ? std::min(*next, begin) : begin;
  }
  return next;
}

}  // namespace resourced::module
