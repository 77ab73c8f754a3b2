#include "core/module/usage_meter.hpp"

#include <string_view>
#include <utility>
#include <variant>

namespace resourced::module {

using text::IdSet;

namespace {

// The targets whose states an event changes. A restart and a definition may change the states of all.
struct Concerned {
  IdSet operator()(const UpdateEvent& event) const { return event.shrink | property_targets(event); }
  IdSet operator()(const DrainEvent& event) const { return event.ranks; }
  IdSet operator()(const UndrainEvent& event) const { return event.ranks; }
  IdSet operator()(const OnlineEvent& event) const { return event.ranks; }
  IdSet operator()(const OfflineEvent& event) const { return event.ranks; }
  IdSet operator()(const TorpidEvent& event) const { return event.ranks; }
  IdSet operator()(const LivelyEvent& event) const { return event.ranks; }
  IdSet operator()(const AllocEvent& event) const {
    IdSet ranks;
    for (const SharedAllocation& allocation : event.allocations) {
      ranks |= allocation->resources.ranks();
      add_ranks(allocation->id, ranks);
    }
    return ranks;
  }
  IdSet operator()(const FreeEvent& event) const {
    IdSet ranks;
    for (const std::string& id : event.ids) add_ranks(id, ranks);
    return event.partial ? ranks & event.ranks : ranks;
  }
  template <class Other>
  IdSet operator()(const Other& /*event*/) const {
    return {};
  }

  void add_ranks(const std::string& id, IdSet& ranks) const {
    if (const Allocation* found = states.ledger.find(id)) ranks |= found->resources.ranks();
  }

  const State& states;
};

bool begins_anew(const Event& event) {
  return std::holds_alternative<RestartEvent>(event.body) || std::holds_alternative<DefineEvent>(event.body);
}

// The text of a reason serves as a name: a long one is cut, and the time of a silence is left out.
std::string reason_name(const Drain& drain) {
  constexpr std::string_view silence = "lost: silent";
  constexpr std::size_t most_bytes = 200;
  if (drain.is_for_silence()) return std::string(silence);
  std::string name = drain.reason.value_or("");
  if (name.size() <= most_bytes) return name;
  std::size_t end = most_bytes;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U;
  };
  while (end > 0 && continues(end)) --end;
  name.resize(end);
  return name + "...";
}

}  // namespace

UsageMeter::UsageMeter(State states, WallTime at, By by)
    : states_(std::move(states)), by_(by), now_(to_micros(at)), month_(by.months ? month_of(now_) : 0) {
  begin_targets();
}

std::size_t UsageMeter::add(const Event& event) {
  require_next(states_, event.body);
  advance(to_micros(event.timestamp));
  if (begins_anew(event) || states_.has_brokers()) {
    close_all();
    (void)module::apply(states_, event);
    begin_targets();
    std::size_t work = 1;
    for (const auto& [rank, target] : targets_) work += 1 + target.properties.size();
    return work;
  }
  const IdSet ranks = std::visit(Concerned{states_}, event.body);
  ranks.for_each([&](IdSet::Id rank) {
    if (const auto found = targets_.find(rank); found != targets_.end()) close(found->second);
  });
  follow_allocations(event);
  (void)module::apply(states_, event);
  const bool has_properties = by_.properties && std::holds_alternative<UpdateEvent>(event.body);
  ranks.for_each([&](IdSet::Id rank) {
    refresh(rank);
    if (!has_properties) return;
    if (const auto found = targets_.find(rank); found != targets_.end()) find_properties(rank, found->second);
  });
  return ranks.count() + 1;
}

void UsageMeter::adopt(State states) {
  close_all();
  states_ = std::move(states);
  begin_targets();
}

void UsageMeter::skip_to(WallTime at) {
  close_all();
  skip(to_micros(at));
}

void UsageMeter::finish(WallTime at) {
  advance(to_micros(at));
  close_all();
}

UsageMeter::Tables UsageMeter::take() {
  // A drain that ended at the time at which it began has no time.
  const auto tidy = [](UsageGroup& group) {
    std::erase_if(group.causes, [](const auto& entry) { return entry.second == Usage{}; });
  };
  for (auto& [month, table] : tables_) {
    tidy(table.all);
    for (auto& [host, group] : table.hosts) tidy(group);
    for (auto& [name, group] : table.properties) tidy(group);
  }
  std::erase_if(tables_, [](const auto& entry) { return entry.second == UsageTable{}; });
  return std::move(tables_);
}

void UsageMeter::advance(Micros time) {
  if (time <= now_) return;
  // Times of a Flux instance are not counted, as its states are in its own log.
  if (time - now_ > longest_gap || states_.has_brokers()) {
    close_all();
    return skip(time);
  }
  while (by_.months && begin_of(month_ + 1) <= time) {
    now_ = begin_of(month_ + 1);
    close_all();
    ++month_;
    begin_groups();
  }
  now_ = time;
}

// Counts the time as missing. It may have hundreds of months, in which nothing else is counted.
void UsageMeter::skip(Micros time) {
  if (time <= now_) return;
  const Month before = month_;
  const auto miss = [this](Micros until) { tables_[month_].missing += until - std::exchange(now_, until); };
  while (by_.months && begin_of(month_ + 1) <= time) {
    miss(begin_of(month_ + 1));
    ++month_;
  }
  miss(time);
  if (month_ != before) begin_groups();
  for (auto& [rank, target] : targets_) target.since = now_;
}

template <class Visit>
void UsageMeter::for_groups(const Target& target, Visit visit) {
  visit(table_->all, UsageGroup::most_causes);
  if (target.host != nullptr) visit(*target.host, UsageGroup::most_causes_of_part);
  for (UsageGroup* group : target.properties) visit(*group, UsageGroup::most_causes_of_part);
}

void UsageMeter::close(Target& target) {
  const Micros time = now_ - std::exchange(target.since, now_);
  if (time == 0) return;
  const auto of = [&](Flag flag) { return (target.flags & flag) != 0 ? time : 0; };
  const Usage usage{time, of(up), of(allocated), of(drained), of(offline), of(excluded), of(unavailable), 0};
  for_groups(target, [&](UsageGroup& group, std::size_t most) {
    group.all += usage;
    if (target.cause != nullptr) group.of(*target.cause, most) += usage;
  });
}

void UsageMeter::close_all() {
  for (auto& [rank, target] : targets_) close(target);
}

void UsageMeter::begin_targets() {
  allocations_.clear();
  for (const auto& [id, allocation] : states_.ledger.all())
    count_allocations(allocation->resources.ranks(), 1);
  targets_.clear();
  states_.inventory.ranks().for_each([&](IdSet::Id rank) {
    Target& target = targets_[rank];
    target.since = target.changed = now_;
    target.flags = flags_of(rank);
    if ((target.flags & unavailable) != 0) target.cause = cause_of(rank);
  });
  begin_groups();
}

void UsageMeter::begin_groups() {
  table_ = &tables_[month_];
  if (by_.hosts) {
    std::vector<UsageGroup*> groups;
    groups.reserve(targets_.size());
    states_.inventory.nodelist().for_each(
        [&](std::string_view host) { groups.push_back(&table_->hosts[std::string(host)]); });
    std::size_t position = 0;
    states_.inventory.ranks().for_each([&](IdSet::Id rank) {
      if (position < groups.size()) targets_[rank].host = groups[position++];
    });
  }
  if (!by_.properties) return;
  for (auto& [rank, target] : targets_) target.properties.clear();
  for (const auto& [name, ranks] : states_.inventory.properties()) {
    if (table_->properties.size() >= UsageTable::most_properties && !table_->properties.contains(name))
      continue;
    UsageGroup* const group = &table_->properties[name];
    ranks.for_each([&](IdSet::Id rank) {
      if (const auto found = targets_.find(rank); found != targets_.end())
        found->second.properties.push_back(group);
    });
  }
}

void UsageMeter::find_properties(IdSet::Id rank, Target& target) {
  // An outage belongs to the properties at the end of its time.
  const Cause* const outage = target.changed == now_ ? target.counted : nullptr;
  if (outage != nullptr) count_outage(target, outage, -1);
  target.properties.clear();
  for (const auto& [name, ranks] : states_.inventory.properties()) {
    if (!ranks.contains(rank)) continue;
    if (table_->properties.size() < UsageTable::most_properties || table_->properties.contains(name))
      target.properties.push_back(&table_->properties[name]);
  }
  if (outage != nullptr) count_outage(target, outage, 1);
}

void UsageMeter::refresh(IdSet::Id rank) {
  const auto found = targets_.find(rank);
  if (found == targets_.end()) return;
  if (!states_.inventory.ranks().contains(rank)) {
    targets_.erase(found);
    return;
  }
  Target& target = found->second;
  if (now_ > target.changed) {
    target.was_up = (target.flags & up) != 0;
    target.changed = now_;
    target.counted = nullptr;
  }
  target.flags = flags_of(rank);
  target.cause = (target.flags & unavailable) != 0 ? cause_of(rank) : nullptr;
  const Cause* const begun = target.was_up ? target.cause : nullptr;
  if (begun == target.counted) return;
  if (target.counted != nullptr) count_outage(target, target.counted, -1);
  if (begun != nullptr) count_outage(target, begun, 1);
  target.counted = begun;
}

void UsageMeter::count_outage(Target& target, const Cause* cause, int number) {
  for_groups(target, [&](UsageGroup& group, std::size_t most) {
    group.all.outages += number;
    group.of(*cause, most).outages += number;
  });
}

std::uint8_t UsageMeter::flags_of(IdSet::Id rank) const {
  unsigned flags = 0;
  if (const auto found = allocations_.find(rank); found != allocations_.end() && found->second > 0)
    flags |= allocated;
  if (states_.targets.drains.ranks().contains(rank)) flags |= drained;
  if (!states_.targets.online.contains(rank)) flags |= offline;
  const bool is_down = (flags & (drained | offline)) != 0 || states_.targets.torpid.contains(rank);
  if (states_.exclude.contains(rank)) {
    flags |= excluded;
  } else {
    flags |= is_down ? unavailable : up;
  }
  return static_cast<std::uint8_t>(flags);
}

const Cause* UsageMeter::cause_of(IdSet::Id rank) {
  Cause cause{Cause::Kind::torpid};
  if (const Drain* drain = states_.targets.drains.find(rank)) {
    cause = {Cause::Kind::drain, reason_name(*drain)};
  } else if (!states_.targets.online.contains(rank)) {
    cause = {Cause::Kind::offline};
  }
  if (causes_.size() >= UsageGroup::most_causes && cause.kind == Cause::Kind::drain &&
      !causes_.contains(cause))
    cause = {Cause::Kind::other};
  return &*causes_.insert(std::move(cause)).first;
}

void UsageMeter::count_allocations(const IdSet& ranks, int number) {
  ranks.for_each([&](IdSet::Id rank) { allocations_[rank] += number; });
}

void UsageMeter::follow_allocations(const Event& event) {
  const auto ranks_of = [&](const std::string& id) {
    const Allocation* found = states_.ledger.find(id);
    return found == nullptr ? IdSet{} : found->resources.ranks();
  };
  if (const auto* alloc = std::get_if<AllocEvent>(&event.body)) {
    for (const SharedAllocation& allocation : alloc->allocations) {
      count_allocations(ranks_of(allocation->id), -1);
      count_allocations(allocation->resources.ranks(), 1);
    }
  } else if (const auto* free = std::get_if<FreeEvent>(&event.body)) {
    for (const std::string& id : free->ids)
      count_allocations(free->partial ? ranks_of(id) & free->ranks : ranks_of(id), -1);
  }
}

}  // namespace resourced::module
