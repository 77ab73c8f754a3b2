// Decisions on drains: at once, at a later time, and with an end. The error texts are those that operators
// know from Flux's drain and undrain.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

IdSet Module::find_targets(std::string_view text, const rset::ResourceSet& set) const {
  if (!has_brokers()) return parse_targets(text, set);
  rset::HostSearch search = rset::parse_known_targets(text, set, defined() ? recorded_inventory() : set);
  if (search.unknown.empty()) return std::move(search.ranks);
  Hostlist unknown;
  for (const std::string& host : search.unknown) unknown.append(host);
  throw Error(EINVAL, fmt::format("invalid targets: invalid hosts: {}", unknown.encode()));
}

Hostlist Module::hosts_named(std::string_view targets) const {
  return state_.named().hosts(find_targets(targets, state_.named()));
}

void Module::check_terms(const DrainCommand& command, WallTime now) const {
  if (command.ticket) {
    // The instance records drains in its own log, which has reasons alone.
    refuse_in_instance("a drain in a Flux instance has no ticket: name it in the reason");
    const auto is_control = [](unsigned char character) { return character < 0x20 || character == 0x7f; };
    if (command.ticket->empty() || command.ticket->size() > most_ticket_bytes ||
        std::ranges::any_of(*command.ticket, is_control)) {
      throw Error(EINVAL, fmt::format("a ticket is one line of 1 to {} bytes", most_ticket_bytes));
    }
  }
  if (!command.from && !command.until) return;
  refuse_in_instance("a drain in a Flux instance begins at once and has no end");
  // With a clock that differs a little, a drain begins at once; with a wrong year it would begin unasked.
  constexpr Seconds most_ago{60};
  if (command.from && *command.from < now - most_ago)
    throw Error(EINVAL, "the drain would begin in the past: leave the begin out to drain at once");
  if (command.from.value_or(now) > last_time || command.until.value_or(now) > last_time)
    throw Error(EINVAL, "the drain would begin or end after the year 9999");
  if (command.until && *command.until <= std::max(now, command.from.value_or(now)))
    throw Error(EINVAL, "the drain would end before it begins");
}

std::vector<Event> Module::schedule(const DrainCommand& command, const IdSet& targets, WallTime now) const {
  check_drainable(targets, targets & excluded(), {});
  if (const IdSet full = state_.targets.scheduled.full(targets, *command.from); !full.empty()) {
    throw Error(EBUSY, fmt::format("{} scheduled to be drained {} times already: cancel one first",
                                   rank_phrase(full), Schedules::most));
  }
  return {{now, ScheduleEvent{command.terms(), targets, addressable().hosts(targets), *command.from}}};
}

void Module::check_reason(const IdSet& targets, const std::optional<std::string>& reason) const {
  if (!reason) return;
  IdSet others;
  for (const auto& [ranks, drain] : state_.targets.drains.runs(targets)) {
    if (drain == nullptr || drain->reason.value_or("") != *reason) others.insert(ranks.first, ranks.last);
  }
  if (!others.empty())
    throw Error(EEXIST, fmt::format("{} not drained for this reason", rank_phrase(others)));
}

std::vector<Event> Module::decide_on(const DrainCommand& command, WallTime now) const {
  const IdSet targets = find_targets(command.targets, addressable());
  check_terms(command, now);
  check_reason(targets, command.if_reason);
  if (command.if_not_drained)
    check_drainable(targets, targets & excluded(), targets & state_.targets.drains.ranks());
  if (command.from && *command.from > now) return schedule(command, targets, now);
  const IdSet in_the_way =
      command.mode == DrainMode::none ? targets & state_.targets.drains.with_reason() : IdSet{};
  check_drainable(targets, targets & excluded(), in_the_way);

  // Targets whose entry would stay as it is are left out of the event. Flux keeps them there: a rank that
  // drains itself may be drained already, and the log still has its reason.
  IdSet changing = targets;
  const Overwrite overwrite = overwrite_of(command.mode);
  if (overwrite == Overwrite::nothing && !records_unchanged()) {
    for (const auto& [ranks, entry] : state_.targets.drains.runs(targets & state_.targets.drains.ranks())) {
      const bool has_terms = !command.reason && (!command.until || command.until == entry->until) &&
                             (!command.ticket || command.ticket == entry->ticket);
      if (entry->reason || has_terms) changing.erase(ranks.first, ranks.last);
    }
  }
  DrainEvent drain{command.terms(), {}, {}, overwrite};
  std::vector<Event> events;
  if (command.mode == DrainMode::update)
    events = take_over(targets, drain, now, std::numeric_limits<std::size_t>::max());
  if (changing.empty()) return events;
  drain.nodelist = addressable().hosts(changing);
  drain.ranks = std::move(changing);
  events.push_back({now, std::move(drain)});
  return events;
}

IdSet Module::drained_by_daemon(const IdSet& targets) const {
  IdSet drained;
  const DrainTable& drains = state_.targets.drains;
  for (const DrainTable::Run& run : drains.runs(targets & drains.ranks() & inventory().ranks())) {
    if (run.entry->is_for_silence()) {
      drained.insert(run.ranks.first, run.ranks.last);
    } else if (run.entry->is_for_health()) {
      IdSet::range(run.ranks.first, run.ranks.last).for_each([&](IdSet::Id rank) {
        if (run.entry->is_for_health_of(inventory().host(rank))) drained.insert(rank);
      });
    }
  }
  return drained;
}

std::vector<Event> Module::take_over(const IdSet& targets, const DrainEvent& drain, WallTime now,
                                     std::size_t most) const {
  std::map<std::optional<std::string>, IdSet> by_reason;
  drained_by_daemon(targets).for_each([&](IdSet::Id rank) {
    by_reason[drain.reason ? drain.reason : state_.targets.drains.find(rank)->reason].insert(rank);
  });
  std::vector<Event> events;
  for (auto& [reason, ranks] : by_reason) {
    if (events.size() >= most) break;
    DrainEvent own = drain;
    own.nodelist = inventory().hosts(ranks);
    own.ranks = std::move(ranks);
    own.reason = reason;
    own.overwrite = Overwrite::reason;
    events.push_back({now, std::move(own)});
  }
  return events;
}

std::vector<Event> Module::decide_on(const UndrainCommand& command, WallTime now) const {
  const IdSet targets = find_targets(command.targets, addressable());
  if (command.mode == DrainMode::none) {
    const IdSet scheduled = command.keeps_scheduled ? IdSet{} : state_.targets.scheduled.ranks();
    if (const IdSet idle = targets - state_.targets.drains.ranks() - scheduled; !idle.empty()) {
      throw Error(EEXIST, fmt::format("{} not drained", rank_phrase(idle)));
    }
  }
  check_reason(targets, command.if_reason);
  std::vector<Event> events;
  IdSet cancelled = command.keeps_scheduled ? IdSet{} : targets & state_.targets.scheduled.ranks();
  IdSet changing = targets & state_.targets.drains.ranks();
  if (command.keeps_scheduled) {
    Replacements next = begin_in_place(changing, now, most_at_once);
    changing -= next.begun;
    changing -= next.later;
    events = std::move(next.events);
    // These targets stay drained until due() begins their scheduled drains: no scheduler sees them come up in
    // between.
    if (!next.later.empty()) {
      Hostlist hosts = addressable().hosts(next.later);
      std::string reason = command.if_reason.value_or("");
      if (reason.empty()) reason = "undrained: a scheduled drain begins";
      events.push_back(
          {now,
           DrainEvent{{std::move(reason), now}, std::move(next.later), std::move(hosts), Overwrite::reason}});
    }
  }
  if (!changing.empty()) {
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

std::vector<Event> Module::decide_on(const CancelCommand& command, WallTime now) const {
  const IdSet targets = find_targets(command.targets, addressable());
  std::map<std::optional<WallTime>, IdSet> by_begin;
  for (const DrainTable& table : state_.targets.scheduled.tables()) {
    for (const auto& [ranks, entry] : table.runs(targets & table.ranks())) {
      std::optional<WallTime> begin;
      if (command.from) begin = entry->timestamp;
      if (begin && !begins_at(*begin, *command.from)) continue;
      by_begin[begin].insert(ranks.first, ranks.last);
    }
  }
  IdSet others = targets;
  for (const auto& [begin, ranks] : by_begin) others -= ranks;
  if (!others.empty()) {
    throw Error(EEXIST, fmt::format("{} not scheduled to be drained{}", rank_phrase(others),
                                    command.from ? " at that time" : ""));
  }
  std::vector<Event> events;
  for (auto& [begin, ranks] : by_begin) {
    Hostlist hosts = addressable().hosts(ranks);
    events.push_back({now, CancelEvent{std::move(ranks), std::move(hosts), begin}});
  }
  return events;
}

Module::Replacements Module::begin_in_place(const IdSet& ending, WallTime now, std::size_t most) const {
  // Bounds the look-ups, as a target whose time has not come is only looked at.
  const std::size_t most_looks = 4 * most;
  Replacements next;
  next.later = (ending & state_.targets.scheduled.ranks()) - excluded();
  for (std::size_t looks = 0; !next.later.empty() && looks < most_looks && next.events.size() < most;
       ++looks) {
    const IdSet::Id first = next.later.first();
    IdSet ranks = next.later;
    const Drain* key = nullptr;
    std::vector<const Drain*> over;
    for (const DrainTable& table : state_.targets.scheduled.tables()) {
      key = table.find(first);
      ranks = key == nullptr ? ranks - table.ranks() : ranks & table.groups().at(*key);
      if (key == nullptr || !key->until || *key->until > now) break;
      over.push_back(std::exchange(key, nullptr));
    }
    next.later -= ranks;
    if (key == nullptr || key->timestamp > now) continue;
    next.begun |= ranks;
    Hostlist hosts = inventory().hosts(ranks);
    for (const Drain* before : over)
      next.events.push_back({now, CancelEvent{ranks, hosts, before->timestamp}});
    next.events.push_back(
        {now,
         DrainEvent{key->terms(), std::move(ranks), std::move(hosts), Overwrite::reason_and_timestamp, true},
         key->by});
  }
  return next;
}

DueDrains Module::due(WallTime now, std::size_t most) const {
  DueDrains due;
  cancel_due(now, most, due.events);
  // A scheduled drain that is over hides the next one of its target until its cancellation is applied.
  if (!due.events.empty()) return due;
  const IdSet begun = end_due(now, most, due.events);
  begin_due(now, most, begun, due);
  return due;
}

IdSet Module::end_due(WallTime now, std::size_t most, std::vector<Event>& events) const {
  std::vector<IdSet> ended;
  IdSet ending;
  for (const auto& [end, key] : state_.targets.drains.ends()) {
    if (end > now || ended.size() >= most) break;
    ended.push_back(state_.targets.drains.groups().at(*key));
    ending |= ended.back();
  }
  Replacements next = begin_in_place(ending, now, most);
  std::ranges::move(next.events, std::back_inserter(events));
  for (IdSet& ranks : ended) {
    ranks -= next.begun;
    ranks -= next.later;
    if (ranks.empty()) continue;
    Hostlist hosts = inventory().hosts(ranks);
    events.push_back(
        {now, UndrainEvent{std::move(ranks), std::move(hosts), std::nullopt, Overwrite::nothing, true}});
  }
  return std::move(next.begun);
}

void Module::cancel_due(WallTime now, std::size_t most, std::vector<Event>& events) const {
  for (const DrainTable& table : state_.targets.scheduled.tables()) {
    for (const auto& [end, key] : table.ends()) {
      if (end > now || events.size() >= most) break;
      const IdSet& ranks = table.groups().at(*key);
      events.push_back({now, CancelEvent{ranks, inventory().hosts(ranks), key->timestamp}});
    }
  }
}

void Module::begin_due(WallTime now, std::size_t most, const IdSet& begun, DueDrains& due) const {
  std::size_t looks = 4 * most;
  most += due.events.size();
  for (const auto& [key, group] : pending_.groups()) {
    if (key.timestamp > now || due.events.size() >= most || looks-- == 0) break;
    const IdSet ranks = group - begun;
    if (IdSet left_out = ranks & excluded(); !left_out.empty()) {
      Hostlist hosts = inventory().hosts(left_out);
      due.events.push_back({now, CancelEvent{std::move(left_out), std::move(hosts), key.timestamp}});
    }
    const IdSet startable = ranks - excluded();
    const IdSet drained = startable & state_.targets.drains.ranks();
    // Drains of the daemon become this drain, as the daemon would end them.
    const IdSet taken_over = drained_by_daemon(drained);
    due.waiting |= drained - taken_over;
    DrainEvent drain{key.terms(), {}, {}, Overwrite::nothing, true};
    for (Event& event : take_over(taken_over, drain, now, most_at_once)) {
      event.by = key.by;
      due.events.push_back(std::move(event));
    }
    IdSet free = startable - drained;
    if (free.empty()) continue;
    drain.nodelist = inventory().hosts(free);
    drain.ranks = std::move(free);
    due.events.push_back({now, std::move(drain), key.by});
  }
}

IdSet Module::drained_by_operators(const IdSet& targets) const {
  const IdSet drained = (targets & state_.targets.drains.ranks()) - excluded();
  return drained - drained_by_daemon(drained);
}

void Module::wait(const IdSet& targets) {
  const IdSet waiting = drained_by_operators(targets & pending_.ranks());
  (void)pending_.undrain(waiting);
  waiting_ |= waiting;
}

void Module::look_again(const IdSet& targets) {
  waiting_ -= targets;
  const DrainTable& next = state_.targets.scheduled.next();
  for (const auto& [ranks, entry] : next.runs(targets & next.ranks()))
    (void)pending_.drain(IdSet::range(ranks.first, ranks.last), *entry, Overwrite::reason_and_timestamp);
}

void Module::follow_schedules(const DrainChanges& changes) {
  (void)pending_.undrain(changes.rescheduled);
  look_again(changes.rescheduled);
  if (waiting_.empty()) return;
  IdSet ended = changes.undrained;
  for (const DrainGroup& group : changes.drained) ended |= group.ranks;
  ended &= waiting_;
  look_again(ended - drained_by_operators(ended));
}

std::optional<WallTime> Module::next_due() const {
  std::optional<WallTime> next;
  const auto take = [&](WallTime when) { next = next ? std::min(*next, when) : when; };
  if (const auto& ends = state_.targets.drains.ends(); !ends.empty()) take(ends.begin()->first);
  // A scheduled drain that waits may be over before it begins.
  for (const DrainTable& table : state_.targets.scheduled.tables())
    if (!table.ends().empty()) take(table.ends().begin()->first);
  if (!pending_.groups().empty()) take(pending_.groups().begin()->first.timestamp);
  return next;
}

}  // namespace resourced::module
