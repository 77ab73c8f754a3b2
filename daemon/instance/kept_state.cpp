#include "daemon/instance/kept_state.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/property_name.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::instance {

using module::DrainEvent;
using module::Overwrite;
using module::UndrainEvent;
using text::Hostlist;
using text::IdSet;

namespace {

using nlohmann::json;
using Properties = rset::ResourceSet::Properties;

constexpr std::size_t most_depth = 128;

struct Entry {
  WallTime timestamp{};
  std::string name;
  json object;

  [[nodiscard]] bool changes_drains() const { return name == "drain" || name == "undrain"; }
  /// Returns the text with the keys in their usual order.
  [[nodiscard]] std::string text() const {
    const auto dumped = [](const json& value) {
      return value.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    std::string line =
        fmt::format(R"({{"timestamp":{},"name":{})", dumped(object.at("timestamp")), dumped(name));
    if (const auto context = object.find("context"); context != object.end())
      line += R"(,"context":)" + dumped(*context);
    return line + '}';
  }
};

/// Returns a member of an object that is a string; null for any other.
const std::string* string_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

Entry read_entry(std::string_view line) {
  try {
    json object = read_object(line);
    const double timestamp = object.at("timestamp").get<double>();
    std::string name = object.at("name").get<std::string>();
    if (timestamp > 0) return {wall_time(timestamp), std::move(name), std::move(object)};
  } catch (const Error&) {
    // An entry that cannot be read is refused below.
  } catch (const json::exception&) {
    // An entry with values of other types is refused below.
  }
  throw Error(EINVAL, "resource.eventlog: decode error");
}

/// Calls read(entry) for each event of a log, one at a time, because their JSON takes much memory.
template <class F>
void for_each_entry(std::string_view log, F&& read) {
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    read(read_entry(line));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
  }
}

json drain_context(const IdSet& ranks, const std::string& hosts, const std::optional<std::string>& reason) {
  json context{{"idset", ranks.encode()}, {"nodelist", hosts}};
  if (reason) context["reason"] = *reason;
  return context;
}

Entry drain_entry(WallTime timestamp, json context) {
  return {timestamp,
          "drain",
          {{"timestamp", to_number(timestamp)}, {"name", "drain"}, {"context", std::move(context)}}};
}

/// Upgrades a log of Flux before 0.62 as Flux does: its last event `resource-init` has the drains of that
/// time, and neither it nor later events have the hosts of drains.
class Upgrader {
 public:
  Upgrader(const Brokers& brokers, std::vector<std::string>& warnings)
      : brokers_(brokers), warnings_(warnings) {}

  std::vector<Entry> upgrade(const Entry& init, std::vector<Entry> later) {
    std::vector<Entry> entries;
    const json context = init.object.value("context", json::object());
    const json drains = context.value("drain", json::object());
    for (const auto& [idset, drain] : drains.items()) {
      const IdSet ranks = IdSet::parse(idset);
      const auto hosts = brokers_.hosts_of(ranks);
      if (!hosts) {
        warnings_.push_back(fmt::format("dropping old drain data with invalid ranks (ranks={})", idset));
        continue;
      }
      const std::string* reason = string_in(drain, "reason");
      entries.push_back(drain_entry(
          wall_time(drain.at("timestamp").get<double>()),
          drain_context(ranks, hosts->encode(),
                        reason == nullptr || reason->empty() ? std::nullopt : std::optional(*reason))));
    }
    std::ranges::stable_sort(entries, {}, &Entry::timestamp);
    for (Entry& entry : later) {
      if (entry.name == "resource-define" || (entry.changes_drains() && has_hosts(entry)))
        entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  /// Adds the hosts to a drain or undrain that has none. Returns false if it cannot be kept.
  bool has_hosts(Entry& entry) {
    json& context = entry.object["context"];
    const std::string* idset = context.is_object() ? string_in(context, "idset") : nullptr;
    if (idset == nullptr) {
      warnings_.push_back(fmt::format("dropping old {} event with invalid context", entry.name));
      return false;
    }
    if (context.contains("nodelist")) return true;
    const auto hosts = brokers_.hosts_of(IdSet::parse(*idset));
    if (!hosts) {
      warnings_.push_back(
          fmt::format("dropping old {} event with invalid ranks (ranks={})", entry.name, *idset));
      return false;
    }
    context["nodelist"] = hosts->encode();
    return true;
  }

  const Brokers& brokers_;
  std::vector<std::string>& warnings_;
};

/// Returns a drain or undrain in present ranks. Throws Error EPROTO.
module::Event read_change(const Entry& entry, std::size_t line, const Brokers& brokers) {
  const auto context = entry.object.find("context");
  const bool has_context = context != entry.object.end() && context->is_object();
  const std::string* idset = has_context ? string_in(*context, "idset") : nullptr;
  const std::string* nodelist = has_context ? string_in(*context, "nodelist") : nullptr;
  try {
    if (idset == nullptr || nodelist == nullptr) throw Error(EPROTO, "a key is missing");
    IdSet ranks = brokers.present_ranks(IdSet::parse(*idset), Hostlist::parse(*nodelist));
    if (entry.name == "undrain") return {entry.timestamp, UndrainEvent{std::move(ranks), {}, {}}};
    const std::string* reason = string_in(*context, "reason");
    return {entry.timestamp, DrainEvent{{reason == nullptr ? std::nullopt : std::optional(*reason)},
                                        std::move(ranks),
                                        {},
                                        proto::read_drain_overwrite(*context)}};
  } catch (const Error&) {
    throw Error(EPROTO, fmt::format("resource.eventlog: line {}: {} parse error", line, entry.name));
  }
}

const IdSet& ranks_of(const module::Event& event) {
  const auto* drain = std::get_if<DrainEvent>(&event.body);
  return drain != nullptr ? drain->ranks : std::get<UndrainEvent>(event.body).ranks;
}

/// Upgrades a log that has an event `resource-init`, as Flux does; returns nothing for any other.
std::optional<std::string> upgrade(std::string_view log, const Brokers& brokers, KeptState& kept) {
  if (log.find(R"("resource-init")") == std::string_view::npos) return std::nullopt;
  std::optional<Entry> init;
  std::vector<Entry> later;
  std::size_t before = 0;
  for_each_entry(log, [&](Entry entry) {
    ++before;
    if (entry.name == "resource-init") {
      init = std::move(entry);
      later.clear();
    } else if (init) {
      later.push_back(std::move(entry));
    }
  });
  if (!init) return std::nullopt;
  try {
    const std::vector<Entry> entries = Upgrader(brokers, kept.warnings).upgrade(*init, std::move(later));
    kept.upgraded = KeptState::Upgrade{before, entries.size()};
    std::string text;
    for (const Entry& entry : entries) text += entry.text() + '\n';
    return text;
  } catch (const json::exception&) {
    throw Error(EPROTO, "resource.eventlog: resource-init parse error");
  }
}

struct Checkpoint {
  WallTime timestamp{};
  struct Drain {
    module::DrainGroup group;
    std::string nodelist;
  };
  std::vector<Drain> drains;
};

Checkpoint read_checkpoint(std::string_view text, const Brokers& brokers) {
  Checkpoint checkpoint;
  if (text.empty()) return checkpoint;
  try {
    const json object = read_object(text);
    checkpoint.timestamp = wall_time(object.at("timestamp").get<double>());
    for (const auto& [idset, drain] : object.at("drain_state").items()) {
      const auto nodelist = drain.at("nodelist").get<std::string>();
      IdSet ranks = brokers.present_ranks(IdSet::parse(idset), Hostlist::parse(nodelist));
      const auto reason = drain.at("reason").get<std::string>();
      checkpoint.drains.push_back({{{{reason.empty() ? std::nullopt : std::optional(reason)},
                                     wall_time(drain.at("timestamp").get<double>())},
                                    std::move(ranks)},
                                   nodelist});
    }
  } catch (const json::exception& error) {
    throw Error(EPROTO, fmt::format("checkpoint.resource: {}", error.what()));
  } catch (const Error& error) {
    throw Error(EPROTO, fmt::format("checkpoint.resource: {}", error.what()));
  }
  std::ranges::stable_sort(checkpoint.drains, {}, [](const auto& drain) { return drain.group.timestamp; });
  return checkpoint;
}

}  // namespace

Brokers::Brokers(const Hostlist& hosts, std::size_t targets)
    : hosts_(hosts), index_(hosts), targets_(targets) {}

IdSet Brokers::present_ranks(const IdSet& ranks, const Hostlist& hosts) const {
  if (ranks.empty()) return {};
  const IdSet targets = targets_ == 0 ? IdSet() : IdSet::range(0, static_cast<IdSet::Id>(targets_ - 1));
  // Handle the usual case, at a cost that follows the ranges instead of the ranks.
  if (ranks.last() < hosts_.size() && hosts_.select(ranks) == hosts) return ranks & targets;
  std::vector<std::string> recorded;
  hosts.for_each([&](std::string_view host) { recorded.emplace_back(host); });
  IdSet present;
  std::size_t at = 0;
  ranks.for_each([&](IdSet::Id rank) {
    if (at < recorded.size() && (rank >= hosts_.size() || hosts_.at(rank) != recorded[at])) {
      const auto found = index_.find(recorded[at++]);
      if (!found) return;
      rank = static_cast<IdSet::Id>(*found);
    } else {
      ++at;
    }
    if (rank < targets_) present.insert(rank);
  });
  return present;
}

std::optional<Hostlist> Brokers::hosts_of(const IdSet& ranks) const {
  if (!ranks.empty() && ranks.last() >= hosts_.size()) return std::nullopt;
  return hosts_.select(ranks);
}

json read_object(std::string_view text) {
  auto read = json_text::read_json(text, most_depth, json_text::JsonManners::lenient);
  if (auto* value = std::get_if<json>(&read); value != nullptr && value->is_object())
    return std::move(*value);
  throw Error(EPROTO, "not a JSON object");
}

json changes_to_json(const module::PropertyChanges& changes) {
  const auto idsets = [](const Properties& properties) {
    json object = json::object();
    for (const auto& [name, ranks] : properties) object[name] = ranks.encode();
    return object;
  };
  return {{"add", idsets(changes.added)}, {"remove", idsets(changes.removed)}};
}

module::PropertyChanges changes_from_json(const json& object) {
  const auto properties = [](const json& idsets) {
    Properties result;
    for (const auto& [name, ranks] : idsets.items()) {
      if (const std::string defect = rset::property_name_defect(name); !defect.empty())
        throw Error(EINVAL, defect);
      result.emplace(name, IdSet::parse(ranks.get<std::string>()));
    }
    return result;
  };
  return {properties(object.at("add")), properties(object.at("remove"))};
}

KeptState read_kept_state(std::string_view eventlog, std::string_view checkpoint_text, const Brokers& brokers,
                          std::optional<WallTime> horizon) {
  KeptState kept;
  kept.rewritten = upgrade(eventlog, brokers, kept);
  if (kept.rewritten) eventlog = *kept.rewritten;
  const Checkpoint checkpoint = read_checkpoint(checkpoint_text, brokers);
  module::TargetStates states;
  // The drains after the events before the checkpoint, as far as the log still has these events.
  module::TargetStates told;
  for (const auto& [group, nodelist] : checkpoint.drains)
    (void)states.drains.drain(group.ranks, group, Overwrite::nothing);
  const WallTime oldest = horizon ? std::min(*horizon, checkpoint.timestamp) : WallTime();
  // The log without older events, if there are any.
  std::string recent;
  std::size_t number = 0;
  std::size_t old = 0;
  std::vector<KeptState::Line> lines;
  for_each_entry(eventlog, [&](const Entry& entry) {
    ++number;
    KeptState::Line line{entry.timestamp, entry.text(), {}};
    if (entry.timestamp < oldest) {
      ++old;
    } else if (horizon) {
      recent.append(line.text).push_back('\n');
    }
    if (entry.changes_drains()) {
      const module::Event event = read_change(entry, number, brokers);
      line.ranks = ranks_of(event);
      (void)fold_states(event, entry.timestamp < checkpoint.timestamp ? told : states);
    }
    if (entry.name != "resource-define") lines.push_back(std::move(line));
  });
  // Add drains whose events are no longer in the log, for readers of the journal.
  for (const auto& [group, nodelist] : checkpoint.drains) {
    const IdSet untold = group.ranks - told.drains.ranks();
    if (untold.empty()) continue;
    const auto hosts = brokers.hosts_of(untold);
    json context = drain_context(untold, hosts ? hosts->encode() : nodelist, group.reason);
    context["overwrite"] = 0;
    kept.history.push_back(
        {group.timestamp, drain_entry(group.timestamp, std::move(context)).text(), untold});
  }
  std::ranges::move(lines, std::back_inserter(kept.history));
  for (const auto& [drain, ranks] : states.drains.groups()) kept.drains.push_back({drain, ranks});
  if (old > 0) kept.rewritten = std::move(recent);
  return kept;
}

std::optional<module::DefineMethod> last_definition(std::string_view eventlog) {
  const std::size_t name = eventlog.rfind(R"("resource-define")");
  if (name == std::string_view::npos) return std::nullopt;
  const std::size_t line_end = std::min(eventlog.find('\n', name), eventlog.size());
  const std::size_t before = eventlog.rfind('\n', name);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  try {
    const json event = read_object(eventlog.substr(begin, line_end - begin));
    return proto::parse_method_name(event.at("context").at("method").get<std::string>());
  } catch (const Error&) {
    return std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string drain_line(std::string_view name, std::string_view event) {
  const json context = read_object(event).at("context");
  return fmt::format("{} idset={} nodelist={} overwrite={} reason={}", name,
                     context.at("idset").get<std::string>(), context.at("nodelist").get<std::string>(),
                     context.value("overwrite", 0), context.value("reason", std::string()));
}

std::string encode_checkpoint(WallTime now, const module::DrainTable& drains,
                              const rset::ResourceSet& targets) {
  json state = json::object();
  for (const auto& [key, ranks] : drains.groups()) {
    state[ranks.encode()] = {{"timestamp", to_number(key.timestamp)},
                             {"reason", key.reason.value_or("")},
                             {"nodelist", targets.hosts(ranks).encode()}};
  }
  return json{{"timestamp", to_number(now)}, {"drain_state", std::move(state)}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

}  // namespace resourced::daemon::instance
