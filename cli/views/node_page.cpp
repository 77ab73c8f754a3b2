#include "cli/views/node_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/views/event_text.hpp"
#include "cli/views/state_names.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"

namespace resourced::cli::views {

using nlohmann::json;
using nlohmann::ordered_json;
using proto::topics::Peers;
using proto::topics::Status;
using text::IdSet;

void NodeHistory::set(std::optional<bool>& flag, bool value, WallTime when) {
  flag = value;
  if (const std::string_view now = state(); now != state_) {
    state_ = now;
    since_ = when;
  }
}

// Returns the state as in targets_by_state(); empty until the events have determined it.
std::string_view NodeHistory::state() const {
  if (drained_ == true) return "drained";
  if (!drained_ || !online_) return {};
  if (torpid_ == true) return "torpid";
  return *online_ ? "avail" : "offline";
}

bool NodeHistory::was_online(const json& context) const {
  const auto ranks = IdSet::parse(context.at("ranks").get<std::string>());
  const auto online = IdSet::parse(context.at("online").get<std::string>());
  const auto position = text::Hostlist::parse(context.at("nodelist").get<std::string>()).find(host_);
  if (!position) return false;
  std::size_t next = 0;
  bool found = false;
  ranks.for_each([&](IdSet::Id rank) { found = found || (next++ == *position && online.contains(rank)); });
  return found;
}

void NodeHistory::add(const json& event) {
  try {
    const proto::EventEntry entry = proto::read_event_entry(event);
    const auto when = entry.timestamp;
    if (entry.name == "restart" && entry.context != nullptr) {
      torpid_ = false;
      // No target is drained before the first event of a log.
      if (last_.empty()) drained_ = false;
      set(online_, was_online(*entry.context), when);
    } else if (entry.name == "drain" || entry.name == "undrain") {
      set(drained_, entry.name == "drain", when);
    } else if (entry.name == "online" || entry.name == "offline") {
      torpid_ = false;
      set(online_, entry.name == "online", when);
    } else if (entry.name == "torpid" || entry.name == "lively") {
      set(torpid_, entry.name == "torpid", when);
    } else if (entry.name == "shrink") {
      // The state is unknown: the target may return in another one.
      online_ = torpid_ = std::nullopt;
      state_ = shrunk_state;
      since_ = when;
    }
  } catch (const std::exception&) {
    // Ignore an event that cannot be read, which tells nothing about the state.
  }
  last_.push_back(event);
  if (last_.size() > most) last_.pop_front();
}

std::optional<WallTime> NodeHistory::since(std::string_view state) const {
  return state == state_ && !state.empty() ? std::optional(since_) : std::nullopt;
}

std::map<IdSet::Id, double> memory_of_graph(const json& r) {
  std::map<IdSet::Id, double> memory;
  constexpr std::array<std::pair<std::string_view, double>, 7> units{{{"", 1},
                                                                      {"B", 1},
                                                                      {"KB", 1024.0},
                                                                      {"MB", 1024.0 * 1024},
                                                                      {"GB", 1024.0 * 1024 * 1024},
                                                                      {"MiB", 1024.0 * 1024},
                                                                      {"GiB", 1024.0 * 1024 * 1024}}};
  try {
    for (const json& node : r.at("scheduling").at("graph").at("nodes")) {
      const json& metadata = node.at("metadata");
      if (metadata.at("type") != "memory") continue;
      const std::string unit = metadata.value("unit", "");
      const auto* const found =
          std::ranges::find(units, std::string_view(unit), &std::pair<std::string_view, double>::first);
      if (found == units.end()) continue;
      memory[metadata.at("rank").get<IdSet::Id>()] += metadata.value("size", 0.0) * found->second;
    }
  } catch (const json::exception&) {
    // The graph has another format or is missing, so nothing is known.
    return {};
  }
  return memory;
}

namespace {

/// The facts of one rank.
struct Node {
  explicit Node(const NodeFacts& facts) : status(facts.status), rank(facts.rank), only(IdSet{rank}) {
    host = status.inventory.host(rank);
    for (const auto& [name, ranks] : targets_by_state(status, only)) {
      if (!ranks.empty()) state = name;
    }
    for (const module::DrainGroup& entry : status.drains) {
      if (entry.ranks.contains(rank)) drain = &entry;
    }
    for (const module::DrainGroup& entry : status.scheduled) {
      if (entry.ranks.contains(rank)) scheduled.push_back(&entry);
    }
    for (const auto& [name, ranks] : status.inventory.properties()) {
      if (ranks.contains(rank)) properties.push_back(name);
    }
    for (const auto& [name, part] : status.partitions) {
      if (part.targets.contains(rank)) partition = name;
    }
    for (const rset::ResourceGroup& group : status.inventory.groups()) {
      if (!group.ranks.contains(rank)) continue;
      cores = group.cores;
      gpus = group.gpus;
    }
    if (facts.peers) {
      for (const Peers::Holder& entry : facts.peers->holders) {
        if (entry.targets.contains(rank)) holder = &entry;
      }
    }
    if (facts.peers && facts.peers->unfit) {
      if (const auto found = facts.peers->unfit->find(rank); found != facts.peers->unfit->end())
        fault = &found->second;
    }
    if (facts.peers && facts.peers->unfit_since) {
      const auto& times = *facts.peers->unfit_since;
      if (const auto found = times.find(rank); found != times.end()) fault_since = found->second;
    }
    since = facts.history.since(state == "draining" ? "drained" : state);
    // The time of a drain may be later than that of its first event, because force-overwrite replaces it. The
    // answer has it in whole seconds.
    const bool is_rounded = drain != nullptr && since && std::abs(to_number(drain->timestamp - *since)) <= 1;
    if (drain != nullptr && (state == "drained" || state == "draining") && !is_rounded)
      since = drain->timestamp;
  }

  const Status& status;
  IdSet::Id rank;
  IdSet only;
  std::string host;
  std::string_view state;
  std::optional<WallTime> since;
  const module::Drain* drain = nullptr;
  std::vector<const module::Drain*> scheduled;
  std::vector<std::string> properties;
  std::optional<std::string> partition;
  IdSet cores;
  IdSet gpus;
  const Peers::Holder* holder = nullptr;
  /// The defect of the node in the report of its agent.
  const std::string* fault = nullptr;
  /// Time since which its checks fail.
  std::optional<WallTime> fault_since;
};

ordered_json drain_json(const module::Drain& drain, const char* time_key) {
  ordered_json object{{time_key, to_number(drain.timestamp)}, {"reason", drain.reason.value_or("")}};
  object["by"] = drain.by ? ordered_json(proto::actor_to_json(*drain.by)) : ordered_json();
  object["until"] = drain.until ? ordered_json(to_number(*drain.until)) : ordered_json();
  object["ticket"] = drain.ticket ? ordered_json(*drain.ticket) : ordered_json();
  return object;
}

/// Returns the cores and gpus of an allocation on this rank.
std::pair<IdSet, IdSet> held_on(const proto::topics::ListedAllocation& allocation, IdSet::Id rank) {
  for (const rset::ResourceGroup& group : allocation.resources.groups()) {
    if (group.ranks.contains(rank)) return {group.cores, group.gpus};
  }
  return {};
}

std::string bytes_text(double bytes) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  return fmt::format("{:g} GiB", bytes / gib);
}

/// Collects lines `  name    value`, without control characters.
class Page {
 public:
  explicit Page(const UserName& user_name, WallTime now) : user_name_(user_name), now_(now) {}

  void add(std::string_view name, const std::string& value) {
    text += fmt::format("  {:<12}{}\n", name, json_text::printable(value));
  }
  [[nodiscard]] std::string time(WallTime time) const { return format_moment(time, now_); }
  [[nodiscard]] std::string actor(const module::Actor& by) const { return format_actor(by, user_name_); }

  std::string text;

 private:
  const UserName& user_name_;
  WallTime now_;
};

std::string count_and_ids(const IdSet& ids) {
  return ids.empty() ? "0" : fmt::format("{} ({})", ids.count(), ids.encode());
}

void add_drain(Page& page, const module::Drain& drain) {
  page.add("reason", drain.reason.value_or("-"));
  if (drain.by) page.add("by", page.actor(*drain.by));
  if (drain.until) page.add("until", page.time(*drain.until));
  if (drain.ticket) page.add("ticket", *drain.ticket);
}

void add_scheduled(Page& page, const std::vector<const module::Drain*>& scheduled) {
  for (const module::Drain* drain : scheduled) {
    std::string line = "drain from " + page.time(drain->timestamp);
    if (drain->until) line += " until " + format_time(*drain->until);
    if (drain->reason) line += ": " + *drain->reason;
    if (drain->by) line += " by " + page.actor(*drain->by);
    if (drain->ticket) line += ", ticket " + *drain->ticket;
    page.add("scheduled", line);
  }
}

void add_events(Page& page, const NodeHistory& history, const UserName& user_name) {
  for (const json& event : history.last()) {
    try {
      page.add(&event == &history.last().front() ? "events" : "",
               EventFormatter(EventTimes::iso, user_name).format(event));
    } catch (const Error&) {
      page.add("", "an event that cannot be read");
    }
  }
}

/// The facts of a host that left the inventory.
struct LeftHost {
  LeftHost(const std::string& host, const Status& status)
      : is_returning(status.returning.find(host).has_value()) {
    for (const auto& entry : status.absent.drains) {
      if (entry.hosts.find(host)) drain = &entry;
    }
    for (const auto& entry : status.absent.scheduled) {
      if (entry.hosts.find(host)) scheduled.push_back(&entry);
    }
  }

  bool is_returning;
  /// The drains that wait for its return.
  const module::Drain* drain = nullptr;
  std::vector<const module::Drain*> scheduled;
};

ordered_json scheduled_json(const std::vector<const module::Drain*>& scheduled) {
  auto list = ordered_json::array();
  for (const module::Drain* drain : scheduled) list.push_back(drain_json(*drain, "from"));
  return list;
}

void add_use(Page& page, const Node& node, const NodeFacts& facts) {
  if (facts.peers) {
    std::string line = "none";
    if (node.holder != nullptr) {
      line = fmt::format("{} since {}{}", node.holder->by ? page.actor(*node.holder->by) : "somebody",
                         page.time(node.holder->since),
                         node.holder->allocations ? "" : ", reports no allocations");
    }
    page.add("scheduler", line);
  }
  if (!facts.allocations) return;
  if (facts.allocations->empty()) page.add("allocations", "none");
  for (const auto& allocation : *facts.allocations) {
    const auto [cores, gpus] = held_on(allocation, node.rank);
    std::string line = fmt::format("{} cores {}", text_of(allocation.name()), cores.encode());
    if (!gpus.empty()) line += " gpus " + gpus.encode();
    if (allocation.expiration)
      line +=
          fmt::format(" {} {}", allocation.expired ? "expired" : "until", page.time(*allocation.expiration));
    if (allocation.note) line += ": " + *allocation.note;
    page.add("allocation", line);
  }
}

}  // namespace

ordered_json node_json(const NodeFacts& facts) {
  const Node node(facts);
  ordered_json page{{"host", node.host}, {"rank", node.rank}, {"state", node.state}};
  page["since"] = node.since ? ordered_json(to_number(*node.since)) : ordered_json();
  page["up"] = node.state == "avail";
  page["online"] = node.status.online.contains(node.rank);
  page["torpid"] = node.status.torpid.contains(node.rank);
  page["drain"] = node.drain == nullptr ? ordered_json() : drain_json(*node.drain, "timestamp");
  page["scheduled"] = scheduled_json(node.scheduled);
  page["cores"] = node.cores.encode();
  page["gpus"] = node.gpus.encode();
  page["memory"] = facts.memory ? ordered_json(*facts.memory) : ordered_json();
  page["properties"] = node.properties;
  page["partition"] = node.partition ? ordered_json(*node.partition) : ordered_json();
  page["scheduler"] = nullptr;
  if (node.holder != nullptr) {
    page["scheduler"] = {{"since", to_number(node.holder->since)}, {"allocations", node.holder->allocations}};
    page["scheduler"]["by"] =
        node.holder->by ? ordered_json(proto::actor_to_json(*node.holder->by)) : ordered_json();
  }
  page["allocations"] = facts.allocations ? ordered_json::array() : ordered_json();
  if (facts.allocations) {
    for (const auto& allocation : *facts.allocations) {
      const auto [cores, gpus] = held_on(allocation, node.rank);
      ordered_json entry{{"id", allocation.id},
                         {"partition", allocation.partition.value_or("")},
                         {"cores", cores.encode()},
                         {"gpus", gpus.encode()}};
      entry["expiration"] =
          allocation.expiration ? ordered_json(to_number(*allocation.expiration)) : ordered_json();
      entry["note"] = allocation.note ? ordered_json(*allocation.note) : ordered_json();
      page["allocations"].push_back(std::move(entry));
    }
  }
  page["agent"] = facts.peers ? ordered_json(facts.peers->agents.contains(node.rank)) : ordered_json();
  page["unchecked"] = node.status.unchecked.contains(node.rank);
  page["fault"] = node.fault == nullptr ? ordered_json() : ordered_json(*node.fault);
  page["fault_since"] = node.fault_since ? ordered_json(to_number(*node.fault_since)) : ordered_json();
  page["events"] = facts.history.last();
  return page;
}

std::string node_page(const NodeFacts& facts, WallTime now, const UserName& user_name) {
  const Node node(facts);
  Page page(user_name, now);
  page.text = fmt::format("{} (rank {})\n", json_text::printable(node.host), node.rank);
  const bool is_online = node.status.online.contains(node.rank);
  std::string state(node.state);
  if (node.since) state += " since " + page.time(*node.since);
  if (node.state != "offline" && !is_online) state += ", offline";
  if (node.state != "torpid" && node.status.torpid.contains(node.rank)) state += ", torpid";
  page.add("state", state);
  if (node.drain != nullptr) add_drain(page, *node.drain);
  add_scheduled(page, node.scheduled);
  page.add("cores", count_and_ids(node.cores));
  page.add("gpus", count_and_ids(node.gpus));
  if (facts.memory) page.add("memory", bytes_text(*facts.memory));
  page.add("properties",
           node.properties.empty() ? "none" : fmt::format("{}", fmt::join(node.properties, ",")));
  if (!node.status.partitions.empty()) page.add("partition", node.partition.value_or("none"));
  add_use(page, node, facts);
  if (facts.peers && facts.takes_agents)
    page.add("agent", facts.peers->agents.contains(node.rank) ? "connected" : "not connected");
  if (node.fault != nullptr) {
    page.add("fault", node.fault_since
                          ? fmt::format("{}, since {}", *node.fault, page.time(*node.fault_since))
                          : *node.fault);
  } else if (node.status.unchecked.contains(node.rank)) {
    page.add("health", facts.peers ? "no check has ended since its agent's hello"
                                   : "the last check has failed, or none has ended");
  }
  add_events(page, facts.history, user_name);
  return page.text;
}

ordered_json left_node_json(const std::string& host, const Status& status, const NodeHistory& history) {
  const LeftHost left(host, status);
  ordered_json page{{"host", host}, {"rank", nullptr}, {"state", shrunk_state}};
  const auto since = history.since(shrunk_state);
  page["since"] = since ? ordered_json(to_number(*since)) : ordered_json();
  for (const char* key : {"up", "online", "torpid"}) page[key] = false;
  page["returning"] = left.is_returning;
  page["drain"] = left.drain == nullptr ? ordered_json() : drain_json(*left.drain, "timestamp");
  page["scheduled"] = scheduled_json(left.scheduled);
  page["events"] = history.last();
  return page;
}

std::string left_node_page(const std::string& host, const Status& status, const NodeHistory& history,
                           WallTime now, const UserName& user_name) {
  const LeftHost left(host, status);
  Page page(user_name, now);
  page.text = fmt::format("{} (removed from the inventory)\n", json_text::printable(host));
  std::string state(shrunk_state);
  if (const auto since = history.since(shrunk_state)) state += " since " + page.time(*since);
  if (left.is_returning) state += ", may return";
  page.add("state", state);
  if (left.drain != nullptr) add_drain(page, *left.drain);
  add_scheduled(page, left.scheduled);
  add_events(page, history, user_name);
  return page.text;
}

}  // namespace resourced::cli::views
