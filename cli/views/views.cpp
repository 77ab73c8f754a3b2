// Rows from payloads, see views.hpp.
#include "cli/views/views.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/views/moves.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/module/drain_table.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/short_form.hpp"
#include "core/rset/targets.hpp"
#include "core/text/quote.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

using rset::ResourceSet;
using text::IdSet;

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 6> status_states = {"avail",   "draining", "drained",
                                                           "exclude", "torpid",   "offline"};
/// The state of hosts that have left the inventory; `all` does not include it.
constexpr std::string_view shrunk_state = "shrunk";
constexpr std::array<std::string_view, 4> sched_states = {"free", "up", "allocated", "down"};

/// A name for several states.
using Alias = std::pair<std::string_view, std::vector<std::string>>;

/// Reads names of states; `further` is a state that `all` does not include.
template <std::size_t N>
std::vector<std::string> parse_states(const std::string& text, const std::array<std::string_view, N>& known,
                                      const std::vector<Alias>& aliases,
                                      std::optional<std::string_view> further = std::nullopt) {
  std::vector<std::string> states;
  std::size_t start = 0;
  while (start <= text.size()) {
    const auto comma = std::min(text.find(',', start), text.size());
    const std::string_view state = std::string_view(text).substr(start, comma - start);
    start = comma + 1;
    if (const auto alias = std::ranges::find(aliases, state, &Alias::first); alias != aliases.end()) {
      states.insert(states.end(), alias->second.begin(), alias->second.end());
      continue;
    }
    if (state == "all") {
      states.insert(states.end(), known.begin(), known.end());
      continue;
    }
    if (state != further && std::find(known.begin(), known.end(), state) == known.end()) {
      throw UsageError(fmt::format("unknown state \"{}\", known are: {}, all{}", state,
                                   fmt::join(known, ", "), further ? fmt::format(", {}", *further) : ""));
    }
    states.emplace_back(state);
  }
  return states;
}

bool wants(const std::vector<std::string>& states, std::string_view state) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

}  // namespace

std::vector<std::pair<std::string_view, IdSet>> targets_by_state(const proto::topics::Status& status,
                                                                 const IdSet& targets) {
  IdSet drained;
  for (const auto& drain : status.drains) drained |= drain.ranks;
  IdSet left = targets;
  const auto take = [&](const IdSet& ranks) {
    IdSet taken = left & ranks;
    left -= taken;
    return taken;
  };
  const auto exclude = take(status.exclude);
  const auto draining = take(drained & status.allocated);
  drained = take(drained);
  const auto torpid = take(status.torpid);
  const auto avail = take(status.online);
  return {{"avail", avail},     {"draining", draining}, {"drained", drained},
          {"exclude", exclude}, {"torpid", torpid},     {"offline", left}};
}

IdSet wanted_targets(const ViewFilter& filter, const ResourceSet& all) {
  return filter.targets.empty() ? all.ranks() : parse_targets(filter.targets, all);
}

std::vector<std::string> parse_status_states(const std::string& text) {
  return parse_states(text, status_states, {{"drain", {"draining", "drained"}}, {"excluded", {"exclude"}}},
                      shrunk_state);
}

std::vector<std::string> parse_sched_states(const std::string& text) {
  return parse_states(text, sched_states, {});
}

Listing status_columns() {
  Listing listing;
  listing.columns = {{"state", "STATE", true},         {"up", "UP"},
                     {"nnodes", "NNODES", true},       {"ranks", "RANKS", false, true},
                     {"nodelist", "NODELIST"},         {"moves", "MOVES", false, true},
                     {"online", "ONLINE", false, true}};
  // Fields of Flux.
  for (const auto& [name, title] : {std::pair("statex", "STATE"), std::pair("up.ascii", "UP"),
                                    std::pair("reason", "REASON"), std::pair("timestamp", "TIME")})
    listing.columns.push_back({name, title, false, true, true});
  return listing;
}

namespace {

/// Returns the cell of a state: the table marks targets that are not online by `*`.
Cell state_cell(const std::string& state, bool online) {
  return {state, online || state == "offline" ? state : state + '*'};
}

}  // namespace

Listing status_view(const Json& payload, const ViewFilter& filter) {
  const auto status = proto::topics::parse_status(payload);
  const auto& all = status.inventory;
  const auto& online = status.online;
  Listing listing = status_columns();
  const auto add_hosts = [&](std::string_view state, bool is_online, const IdSet& ranks,
                             const text::Hostlist& hosts, const Cause& cause) {
    const bool is_up = state == "avail";
    Cell shown = state == shrunk_state ? Cell(shrunk_state) : state_cell(std::string(state), is_online);
    listing.rows.push_back({std::move(shown), is_up, hosts.size(), ranks.encode(), hosts.encode(),
                            Cell(moves_of(status, ranks), short_moves_of(status, ranks)), is_online,
                            std::string(state), is_up ? "y" : "n", cause.reason,
                            cause.time ? Cell(to_number(*cause.time), format_time(*cause.time)) : Cell("")});
  };
  const auto add_one = [&](std::string_view state, bool is_online, const IdSet& ranks, const Cause& cause) {
    add_hosts(state, is_online, ranks, all.hosts(ranks), cause);
  };
  const auto add_row = [&](std::string_view state, bool is_online, const IdSet& ranks) {
    if (ranks.empty() || (state != "draining" && state != "drained"))
      return add_one(state, is_online, ranks, {});
    for (const auto& [cause, some] : sets_by_cause(status, ranks, filter))
      add_one(state, is_online, some, cause);
  };
  const auto targets = wanted_targets(filter, all);
  for (const auto& [state, ranks] : targets_by_state(status, targets)) {
    const bool named = wants(filter.states, state);
    auto up = ranks & online;
    auto down = ranks - online;
    auto asked_for = ranks;
    if (state == "torpid") asked_for = targets & status.torpid;
    if (state == "offline") asked_for = targets - online;
    if (!named && !filter.states.empty()) {
      up = wants(filter.states, "torpid") ? up & status.torpid : IdSet();
      if (!wants(filter.states, "offline")) down = {};
    }
    if (!up.empty()) add_row(state, true, up);
    if (!down.empty()) add_row(state, false, down);
    if (named && asked_for.empty()) add_row(state, state != "offline", {});
  }
  if (wants(filter.states, shrunk_state))
    add_hosts(shrunk_state, false, {}, filter.targets.empty() ? status.shrunk : text::Hostlist(), {});
  return listing;
}

Listing drain_columns() {
  Listing listing;
  listing.columns = {{"timestamp", "TIMESTAMP"},       {"state", "STATE"},   {"ranks", "RANK"},
                     {"nnodes", "NNODES", true, true}, {"reason", "REASON"}, {"nodelist", "NODELIST"}};
  add_cause_columns(listing);
  listing.columns.push_back({"online", "ONLINE", false, true});
  return listing;
}

Listing drain_view(const Json& payload, const ViewFilter& filter, const UserName& user_name) {
  const auto status = proto::topics::parse_status(payload);
  const auto& all = status.inventory;
  const auto targets = wanted_targets(filter, all);
  auto entries = status.drains;
  for (auto& entry : entries) entry.ranks &= targets;
  std::erase_if(entries, [](const auto& entry) { return entry.ranks.empty(); });
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.timestamp, a.ranks.first()) < std::pair(b.timestamp, b.ranks.first());
  });
  Listing listing = drain_columns();
  for (const auto& entry : entries) {
    const auto add = [&](const std::string& state, bool online, const IdSet& some) {
      if (some.empty()) return;
      std::vector<Cell> row{Cell(to_number(entry.timestamp), format_time(entry.timestamp)),
                            state_cell(state, online),
                            some.encode(),
                            some.count(),
                            entry.reason.value_or(""),
                            all.hosts(some).encode()};
      add_cause_cells(row, entry, user_name);
      row.emplace_back(online);
      listing.rows.push_back(std::move(row));
    };
    const auto add_state = [&](const char* state, const IdSet& some) {
      add(state, true, some & status.online);
      add(state, false, some - status.online);
    };
    add_state("draining", entry.ranks & status.allocated);
    add_state("drained", entry.ranks - status.allocated);
  }
  return listing;
}

Listing allocation_columns() {
  Listing listing;
  listing.columns = {{"id", "ID"},
                     {"partition", "PARTITION"},
                     {"expiration", "EXPIRATION"},
                     {"nnodes", "NNODES", true},
                     {"ncores", "NCORES", true},
                     {"ngpus", "NGPUS", true},
                     {"nodelist", "NODELIST"},
                     {"note", "NOTE"},
                     {"expired", "EXPIRED", false, true},
                     {"R", "R", false, true}};
  return listing;
}

void add_allocations(Listing& listing, const Json& allocations, bool with_resources) {
  for (const auto& allocation : proto::topics::parse_allocation_list(allocations)) {
    const auto counts = allocation.resources.counts();
    Cell expiration(nullptr, "-");
    if (allocation.expiration) {
      expiration = Cell(to_number(*allocation.expiration),
                        allocation.expired ? "expired" : format_time(*allocation.expiration));
    }
    text::Hostlist all = allocation.resources.nodelist();
    const text::HostIndex there(all);
    // A host may be present although some of its cores or gpus are absent.
    text::Hostlist::parse(allocation.absent).for_each([&](std::string_view host) {
      if (!there.find(host)) all.append(host);
    });
    std::string hosts = all.encode();
    listing.rows.push_back(
        {allocation.id, allocation.partition.value_or(""), std::move(expiration), counts.nodes, counts.cores,
         counts.gpus, std::move(hosts), allocation.note.value_or(""), allocation.expired,
         with_resources ? Cell(allocation.resources.to_json(), allocation.resources.encode())
                        : Cell(nullptr)});
  }
}

namespace {

/// Returns the sets in the order of `sched_states`.
std::array<ResourceSet, 4> sched_sets(const proto::topics::SchedStatus& status,
                                      const std::optional<IdSet>& targets) {
  auto [all, allocated, down, reported] = status;
  if (targets) {
    all = all.copy_ranks(*targets);
    allocated = allocated.copy_ranks(*targets);
    down = down.copy_ranks(*targets);
  }
  const auto rest = diff(diff(all, allocated), down);
  return {rest.copy_ranks(rest.ranks() & reported), rest.copy_ranks(rest.ranks() - reported),
          std::move(allocated), std::move(down)};
}

bool wants_all_sched_states(const SchedFilter& filter) {
  return filter.states.empty() ||
         std::all_of(sched_states.begin(), sched_states.end(),
                     [&](std::string_view state) { return wants(filter.states, state); });
}

}  // namespace

Listing sched_columns() {
  Listing listing;
  listing.columns = {{"state", "STATE", true},        {"nnodes", "NNODES", true},
                     {"ncores", "NCORES", true},      {"ngpus", "NGPUS", true},
                     {"ranks", "RANKS", false, true}, {"properties", "PROPERTIES", false, true},
                     {"nodelist", "NODELIST"},        {"rlist", "LIST", false, true, true}};
  return listing;
}

namespace {

std::string property_names(const ResourceSet& set) {
  std::string names;
  for (const auto& [name, ranks] : set.properties()) names += (names.empty() ? "" : ",") + name;
  return names;
}

}  // namespace

Listing sched_view(const Json& sched_status, const SchedFilter& filter, bool by_properties) {
  Listing listing = sched_columns();
  const auto sets = sched_sets(proto::topics::parse_sched_status(sched_status), filter.targets);
  const bool everything = wants_all_sched_states(filter);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const bool is_needless = sched_states[i] == "up" && sets[i].empty();
    if (everything ? is_needless : !wants(filter.states, sched_states[i])) continue;
    const auto add = [&](const ResourceSet& set, const std::string& properties) {
      const auto counts = set.counts();
      listing.rows.push_back({std::string(sched_states[i]), counts.nodes, counts.cores, counts.gpus,
                              set.ranks().encode(), properties, set.nodelist().encode(),
                              rset::short_form(set)});
    };
    if (!by_properties || sets[i].empty()) {
      add(sets[i], property_names(sets[i]));
      continue;
    }
    for (const auto& [names, ranks] : property_sets(sets[i])) add(sets[i].copy_ranks(ranks), names);
  }
  return listing;
}

ResourceSet sched_resources(const Json& sched_status, const SchedFilter& filter) {
  const bool everything = wants_all_sched_states(filter);
  const auto status = proto::topics::parse_sched_status(sched_status);
  auto all = filter.targets ? status.all.copy_ranks(*filter.targets) : status.all;
  if (everything) return all;
  // An allocated resource may also be down, so the sets overlap. Subtract the other states from all, so that
  // each resource is counted once.
  auto rest = all;
  const auto sets = sched_sets(status, filter.targets);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (wants(filter.states, sched_states[i])) rest = diff(rest, sets[i]);
  }
  return diff(all, rest);
}

std::string info_line(const rset::ResourceCounts& counts) {
  return fmt::format("{} Nodes, {} Cores, {} GPUs", counts.nodes, counts.cores, counts.gpus);
}

std::string format_time(WallTime time) {
  const auto seconds = static_cast<std::time_t>(std::round(to_number(time)));
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return fmt::format("{}", to_number(time));
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &local);
  const std::string shown(text.data(), length);
  if (local.tm_gmtoff == 0) return shown + 'Z';
  constexpr long minute = 60;
  const long ahead = std::labs(local.tm_gmtoff) / minute;
  return fmt::format("{}{}{:02}:{:02}", shown, local.tm_gmtoff < 0 ? '-' : '+', ahead / minute,
                     ahead % minute);
}

std::string format_local_time(WallTime time, const std::string& form) {
  const auto seconds = static_cast<std::time_t>(std::floor(to_number(time)));
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return fmt::format("{}", to_number(time));
  // A form may have an empty result, for which strftime() returns 0, as for too little room: a further
  // character tells them apart.
  const std::string longer = form + '.';
  constexpr std::size_t most_bytes = 4096;
  std::array<char, most_bytes> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), longer.c_str(), &local);
  if (length == 0) throw UsageError(fmt::format("a time in the form {} is too long", text::quoted(form)));
  return {text.data(), length - 1};
}

std::string format_age(Seconds age) {
  constexpr std::array<std::pair<double, char>, 3> units{{{86400, 'd'}, {3600, 'h'}, {60, 'm'}}};
  const double seconds = std::max(0.0, to_number(age));
  for (const auto& [length, unit] : units) {
    if (seconds >= length) return fmt::format("{:.0f}{}", std::floor(seconds / length), unit);
  }
  return fmt::format("{:.0f}s", std::floor(seconds));
}

std::string format_moment(WallTime time, WallTime now) {
  const Seconds age = now - time;
  // Tolerance for different clocks of this machine and of the daemon.
  constexpr Seconds skew{1};
  if (age < -skew) return fmt::format("{} (in {})", format_time(time), format_age(-age));
  return fmt::format("{} ({} ago)", format_time(time), format_age(age));
}

std::string format_actor(const module::Actor& actor, const UserName& user_name) {
  if (const auto* user = std::get_if<module::ByUser>(&actor)) {
    const auto name = user_name ? user_name(user->id) : std::nullopt;
    return name ? *name : fmt::format("uid {}", user->id);
  }
  return fmt::format("{} {}", proto::actor_key(actor), json_text::printable(proto::actor_name(actor)));
}

bool is_name_of(std::string_view text, const module::Actor& actor, const UserName& user_name) {
  return text == proto::actor_name(actor) || text == format_actor(actor, {}) ||
         text == format_actor(actor, user_name);
}

std::string describe_moves(const Json& payload, const ViewFilter& filter) {
  const auto status = proto::topics::parse_status(payload);
  return moves_text(status, wanted_targets(filter, status.inventory));
}

std::string describe_rivals(const Json& payload, const ViewFilter& filter) {
  const auto status = proto::topics::parse_status(payload);
  std::string lines;
  if (status.rivals.empty()) return lines;
  const auto targets = wanted_targets(filter, status.inventory);
  for (const auto& [rank, origins] : status.rivals) {
    if (!targets.contains(rank)) continue;
    lines += fmt::format(
        "{}: two agents say that they are this host and take turns, from {}: rename one of them\n",
        status.inventory.host(rank), json_text::printable(origins));
  }
  return lines;
}

}  // namespace resourced::cli::views
