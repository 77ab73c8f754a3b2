#include "reference.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "core/text/hostlist.hpp"

namespace resourced::sim {

Reference::Ranks parse_ranks(const std::string& idset) {
  Reference::Ranks ranks;
  std::istringstream parts(idset);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = static_cast<unsigned>(std::stoul(part));
    const auto last =
        dash == std::string::npos ? first : static_cast<unsigned>(std::stoul(part.substr(dash + 1)));
    for (unsigned rank = first; rank <= last; ++rank) ranks.insert(rank);
  }
  return ranks;
}

std::map<std::string, std::string> property_sets(const nlohmann::json& object, const char* key) {
  return object.value(key, std::map<std::string, std::string>());
}

namespace {

bool is_by_operator(const nlohmann::json& context) {
  return context.contains("by") && context.at("by").contains("userid");
}

}  // namespace

void Reference::begin(const Configuration& configuration) {
  names_.clear();
  excluded_.clear();
  for (const std::string& host : configuration.hosts) {
    const auto ordinal = std::ranges::count(names_, host, &Name::host);
    names_.push_back({host, static_cast<unsigned>(ordinal)});
  }
  for (const unsigned rank : configuration.exclude) excluded_.insert(names_.at(rank));
}

void Reference::exclude(const std::set<unsigned>& ranks) {
  excluded_.clear();
  for (const unsigned rank : ranks) excluded_.insert(names_.at(rank));
}

// A rank whose host is unchanged keeps its name. The other ranks of a host follow in the order of ranks.
std::map<Reference::Name, Reference::Name> Reference::moved_to(const std::vector<Name>& next) const {
  std::map<Name, Name> moved;
  std::set<Name> taken;
  const Ranks before = present();
  for (const unsigned rank : before) {
    if (rank >= next.size() || next[rank].host != names_[rank].host) continue;
    moved.emplace(names_[rank], next[rank]);
    taken.insert(next[rank]);
  }
  for (const unsigned rank : before) {
    if (moved.contains(names_[rank])) continue;
    const auto free = std::ranges::find_if(
        next, [&](const Name& name) { return name.host == names_[rank].host && !taken.contains(name); });
    if (free == next.end()) continue;
    moved.emplace(names_[rank], *free);
    taken.insert(*free);
  }
  return moved;
}

void Reference::load(const std::vector<std::string>& hosts, const nlohmann::json& resources) {
  Reference next(returns_);
  next.begin({hosts, {}});
  const std::map<Name, Name> moved = moved_to(next.names_);
  for (const auto& [from, to] : moved) {
    if (online_.contains(from)) next.online_.insert(to);
    if (torpid_.contains(from)) next.torpid_.insert(to);
    if (drained_.contains(from)) next.drained_[to] = drained_[from];
    if (drained_by_daemon_.contains(from)) next.drained_by_daemon_.insert(to);
    if (ends_.contains(from)) next.ends_[to] = ends_[from];
    if (scheduled_.contains(from)) next.scheduled_[to] = scheduled_[from];
  }
  const nlohmann::json& execution = resources.at("execution");
  for (const auto& [property, targets] : property_sets(execution, "properties"))
    for (const Name& target : next.names(targets)) next.properties_.emplace(property, target);
  next.loaded_properties_ = next.properties_;
  next.wait_for_hosts(*this, moved);
  next.expiration_ = execution.at("expiration");
  next.allocations_ = allocations_;
  next.expirations_ = expirations_;
  *this = std::move(next);
}

// A target that has been away takes its state back by name. One that the R lacks waits by a name that no
// target of the R has.
void Reference::wait_for_hosts(const Reference& before, const std::map<Name, Name>& moved) {
  const std::set<Name> here(names_.begin(), names_.end());
  std::set<Name> there(before.names_.begin(), before.names_.end());
  // The drains of targets that were removed wait by the names that they had.
  for (const Name& name : before.shrunk_) there.erase(name);
  std::set<Name> taken = here;
  const auto take = [&](const Name& name) {
    if (!there.contains(name)) taken.insert(name);
  };
  for (const auto& [name, reason] : before.drained_) take(name);
  for (const auto& [name, drain] : before.scheduled_) take(name);
  for (const auto& [property, name] : before.properties_) take(name);
  std::map<Name, Name> waits;
  for (const Name& name : before.names_) {
    if (moved.contains(name) || !there.contains(name)) continue;
    Name free = name;
    while (!taken.insert(free).second) ++free.ordinal;
    waits.emplace(name, free);
  }
  const auto name_of = [&](const Name& name) -> std::optional<Name> {
    if (!there.contains(name)) return name;
    const auto found = waits.find(name);
    return found == waits.end() ? std::nullopt : std::optional(found->second);
  };

  for (const auto& [former, reason] : before.drained_) {
    const std::optional<Name> name = name_of(former);
    if (!name || !drained_.emplace(*name, reason).second) continue;
    if (here.contains(*name)) returned_.insert(*name);
    if (before.drained_by_daemon_.contains(former)) drained_by_daemon_.insert(*name);
    if (const auto end = before.ends_.find(former); end != before.ends_.end())
      ends_.emplace(*name, end->second);
  }
  for (const auto& [former, drains] : before.scheduled_) {
    if (const std::optional<Name> name = name_of(former)) scheduled_.emplace(*name, drains);
  }
  for (const auto& property : before.properties_) {
    const std::optional<Name> name = name_of(property.second);
    if (name && !here.contains(*name) && !before.loaded_properties_.contains(property))
      properties_.emplace(property.first, *name);
  }
}

void Reference::unload() {
  for (const auto& property : loaded_properties_) properties_.erase(property);
  loaded_properties_.clear();
}

Reference::Ranks Reference::ranks(const std::set<Name>& names) const {
  Ranks result;
  for (unsigned rank = 0; rank < names_.size(); ++rank) {
    if (names.contains(names_[rank])) result.insert(rank);
  }
  return result;
}

std::set<Reference::Name> Reference::names(const std::string& idset) const {
  std::set<Name> result;
  for (const unsigned rank : parse_ranks(idset)) result.insert(names_.at(rank));
  return result;
}

Reference::Ranks Reference::present() const {
  Ranks result;
  for (unsigned rank = 0; rank < names_.size(); ++rank) {
    if (!shrunk_.contains(names_[rank])) result.insert(rank);
  }
  return result;
}

Reference::Ranks Reference::present_on(const std::string& host) const {
  Ranks result = present();
  std::erase_if(result, [&](unsigned rank) { return names_[rank].host != host; });
  return result;
}

Reference::Ranks Reference::available() const {
  Ranks result;
  for (const unsigned rank : present()) {
    const Name& name = names_[rank];
    if (online_.contains(name) && !torpid_.contains(name) && !drained_.contains(name) &&
        !excluded_.contains(name)) {
      result.insert(rank);
    }
  }
  return result;
}

std::map<unsigned, std::string> Reference::drained() const {
  std::map<unsigned, std::string> result;
  for (const unsigned rank : present()) {
    const auto found = drained_.find(names_[rank]);
    if (found != drained_.end()) result.emplace(rank, found->second);
  }
  return result;
}

std::map<unsigned, Reference::Schedules> Reference::scheduled() const {
  std::map<unsigned, Schedules> result;
  for (const unsigned rank : present()) {
    const auto found = scheduled_.find(names_[rank]);
    if (found != scheduled_.end()) result.emplace(rank, found->second);
  }
  return result;
}

std::map<std::string, Reference::Ranks> Reference::properties() const {
  std::map<std::string, Ranks> result;
  for (const unsigned rank : present()) {
    for (const auto& [property, name] : properties_) {
      if (name == names_[rank]) result[property].insert(rank);
    }
  }
  return result;
}

// The state of targets that the configuration lacks waits for them, and the drains of targets that were
// removed. An excluded target is undrained by a separate event, unless it has only just returned.
void Reference::define() {
  std::erase_if(drained_, [&](const auto& drain) {
    return returned_.contains(drain.first) && excluded_.contains(drain.first);
  });
  returned_.clear();
  std::erase_if(drained_by_daemon_, [&](const Name& name) { return !drained_.contains(name); });
  std::erase_if(ends_, [&](const auto& end) { return !drained_.contains(end.first); });
}

void Reference::erase_scheduled(const Name& name, double begin) {
  scheduled_[name].erase(begin);
  if (scheduled_[name].empty()) scheduled_.erase(name);
}

void Reference::begin_scheduled(const Name& name, const nlohmann::json& context, double now) {
  const auto found = scheduled_.find(name);
  if (found == scheduled_.end() || found->second.begin()->first > now)
    throw std::runtime_error("a drain begins that is not scheduled for this time: " + context.dump());
  for (const char* key : {"until", "by", "ticket"}) {
    if (found->second.begin()->second.value(key, nlohmann::json()) != context.value(key, nlohmann::json()))
      throw std::runtime_error("a drain begins as another than was scheduled: " + context.dump());
  }
  erase_scheduled(name, found->second.begin()->first);
  if (!drained_.contains(name) || drained_by_daemon_.contains(name)) return;
  // In place of another drain that ends now, by its time or by rolling work.
  const bool ends = ends_.contains(name) && ends_[name] <= now;
  if (context.at("overwrite") != 2 || (!ends && !drained_[name].starts_with("rolling: ")))
    throw std::runtime_error("a scheduled drain replaces that of an operator: " + context.dump());
}

void Reference::drain(const nlohmann::json& context, double now) {
  const std::string reason = context.value("reason", "");
  const int overwrite = context.at("overwrite");
  for (const Name& name : names(context.at("idset"))) {
    if (context.value("scheduled", false)) begin_scheduled(name, context, now);
    // A later drain may add a reason or an end to a drain that has no reason.
    if (drained_.contains(name) && overwrite == 0 && !drained_[name].empty()) continue;
    drained_[name] = reason;
    if (overwrite != 0) ends_.erase(name);
    if (context.contains("until")) ends_[name] = context.at("until");
    if (is_by_operator(context)) {
      drained_by_daemon_.erase(name);
    } else {
      drained_by_daemon_.insert(name);
    }
  }
}

void Reference::undrain(const nlohmann::json& context, double now) {
  for (const Name& name : names(context.at("idset"))) {
    const bool may_end = excluded_.contains(name) || (returns_ && drained_by_daemon_.contains(name)) ||
                         (ends_.contains(name) && ends_[name] <= now);
    if (!is_by_operator(context) && !may_end)
      throw std::runtime_error("a drain that an operator has to end is ended: " + context.dump());
    drained_.erase(name);
    drained_by_daemon_.erase(name);
    ends_.erase(name);
    if (!context.value("keeps-scheduled", false)) scheduled_.erase(name);
  }
}

void Reference::schedule(const nlohmann::json& context) {
  nlohmann::json drain{{"from", context.at("from")}, {"reason", context.value("reason", "")}};
  for (const char* key : {"until", "by", "ticket"}) {
    if (context.contains(key)) drain[key] = context.at(key);
  }
  for (const Name& name : names(context.at("idset"))) scheduled_[name][context.at("from")] = drain;
}

void Reference::cancel(const nlohmann::json& context, double now) {
  for (const Name& name : names(context.at("idset"))) {
    const auto found = scheduled_.find(name);
    if (found == scheduled_.end()) throw std::runtime_error("a drain is cancelled that is not scheduled");
    if (!context.contains("from")) {
      if (!is_by_operator(context)) throw std::runtime_error("scheduled drains are lost: " + context.dump());
      scheduled_.erase(found);
      continue;
    }
    const auto drain = found->second.find(context.at("from"));
    if (drain == found->second.end()) throw std::runtime_error("a drain is cancelled that is not scheduled");
    const bool is_over = drain->second.contains("until") && drain->second.at("until") <= now;
    if (!is_by_operator(context) && !excluded_.contains(name) && !is_over)
      throw std::runtime_error("a scheduled drain is lost: " + context.dump());
    erase_scheduled(name, context.at("from"));
  }
}

void Reference::forget(const nlohmann::json& context) {
  std::set<std::string> hosts;
  text::Hostlist::parse(context.at("nodelist").get<std::string>()).for_each([&](std::string_view host) {
    hosts.emplace(host);
  });
  const auto waits = [&](const Name& name) {
    return hosts.contains(name.host) &&
           (shrunk_.contains(name) || std::ranges::find(names_, name) == names_.end());
  };
  std::erase_if(drained_, [&](const auto& drain) { return waits(drain.first); });
  std::erase_if(drained_by_daemon_, waits);
  std::erase_if(ends_, [&](const auto& end) { return waits(end.first); });
  std::erase_if(scheduled_, [&](const auto& drain) { return waits(drain.first); });
  std::erase_if(properties_, [&](const auto& property) { return waits(property.second); });
}

void Reference::alloc(const nlohmann::json& context) {
  for (const nlohmann::json& allocation : context.at("allocations")) {
    const auto [place, is_new] = allocations_.try_emplace({allocation.at("partition"), allocation.at("id")});
    if (!is_new) throw std::runtime_error("an id is allocated twice in a partition");
    hold(allocation.at("R"), place->second);
    expire(place->first, allocation);
  }
}

void Reference::update_allocation(const nlohmann::json& context) {
  const auto found = allocations_.find({context.at("partition"), context.at("id")});
  if (found == allocations_.end()) throw std::runtime_error("an unknown allocation is changed");
  if (context.contains("added")) hold(context.at("added"), found->second);
  expire(found->first, context);
}

void Reference::expire(const std::pair<std::string, std::string>& name, const nlohmann::json& object) {
  if (!object.contains("expiration")) return;
  expirations_[name] = object.at("expiration");
  if (expirations_[name] == 0) expirations_.erase(name);
}

void Reference::hold(const nlohmann::json& resources, Cores& cores) {
  for (const nlohmann::json& entry : resources.at("execution").at("R_lite")) {
    for (const unsigned rank : parse_ranks(entry.at("rank"))) {
      const Name& name = names_.at(rank);
      if (drained_.contains(name) || excluded_.contains(name))
        throw std::runtime_error("a drained or excluded target is allocated");
      for (const unsigned core : parse_ranks(entry.at("children").at("core"))) cores.emplace(name.host, core);
    }
  }
}

void Reference::free(const nlohmann::json& context, double now) {
  for (const std::string id : context.at("ids")) {
    const auto found = allocations_.find({context.at("partition"), id});
    if (found == allocations_.end()) throw std::runtime_error("an unknown id is freed");
    const auto expiration = expirations_.find(found->first);
    if (!context.contains("by") && (expiration == expirations_.end() || expiration->second > now))
      throw std::runtime_error("an allocation is freed by nobody, and has not expired: " + context.dump());
    if (!context.contains("idset")) {
      expirations_.erase(found->first);
      allocations_.erase(found);
      continue;
    }
    for (const unsigned rank : parse_ranks(context.at("idset"))) {
      // See ledger.cpp for the allocations that have several targets of a host.
      for (unsigned core = 0; core < 4; ++core) {
        const auto one = found->second.find({names_.at(rank).host, core});
        if (one != found->second.end()) found->second.erase(one);
      }
    }
    if (!found->second.empty()) continue;
    expirations_.erase(found->first);
    allocations_.erase(found);
  }
}

void Reference::apply(const nlohmann::json& event) {
  const std::string name = event.at("name");
  const nlohmann::json& context = event.at("context");
  if (name == "restart") {
    online_ = names(context.at("online"));
    torpid_.clear();
  } else if (name == "resource-define") {
    define();
  } else if (name == "drain") {
    drain(context, event.at("timestamp"));
  } else if (name == "undrain") {
    undrain(context, event.at("timestamp"));
  } else if (name == "drain-schedule") {
    schedule(context);
  } else if (name == "drain-cancel") {
    cancel(context, event.at("timestamp"));
  } else if (name == "online") {
    online_.merge(names(context.at("idset")));
  } else if (name == "offline") {
    for (const Name& target : names(context.at("idset"))) online_.erase(target), torpid_.erase(target);
  } else if (name == "torpid") {
    torpid_.merge(names(context.at("idset")));
  } else if (name == "lively") {
    for (const Name& target : names(context.at("idset"))) torpid_.erase(target);
  } else if (name == "shrink") {
    shrunk_.merge(names(context.at("idset")));
    std::erase_if(properties_, [&](const auto& property) { return shrunk_.contains(property.second); });
  } else if (name == "forget") {
    forget(context);
  } else if (name == "resource-update") {
    expiration_ = context.at("expiration");
  } else if (name == "property-update") {
    for (const auto& [property, targets] : property_sets(context, "property-add")) {
      for (const Name& target : names(targets)) properties_.emplace(property, target);
    }
    for (const auto& [property, targets] : property_sets(context, "property-remove")) {
      for (const Name& target : names(targets)) properties_.erase({property, target});
    }
  } else if (name == "alloc") {
    alloc(context);
  } else if (name == "alloc-update") {
    update_allocation(context);
  } else if (name == "free") {
    free(context, event.at("timestamp"));
  } else if (name != "evict") {  // which changes no state
    throw std::runtime_error("an event of no known name: " + name);
  }
}

}  // namespace resourced::sim
