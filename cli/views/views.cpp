// Rows from payloads, see views.hpp.
#include "cli/views/views.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/views/moves.hpp"
#include "cli/views/state_names.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/module/drain_table.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/quote.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

using rset::ResourceSet;
using text::IdSet;

using Json = nlohmann::json;

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

IdSet known_targets(std::string_view text, const ResourceSet& all) {
  if (const auto hosts = rset::hosts_of_targets(text)) return rset::known_ranks_of_hosts(*hosts, all);
  return IdSet::parse(text) & all.ranks();
}

IdSet wanted_targets(const ViewFilter& filter, const ResourceSet& all) {
  return filter.targets.empty() ? all.ranks() : known_targets(filter.targets, all);
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

/// Returns those of the hosts that pass the filter, which does not name any of them by rank.
text::Hostlist wanted_hosts(const ViewFilter& filter, const text::Hostlist& hosts) {
  if (filter.targets.empty()) return hosts;
  text::Hostlist found;
  const auto named = rset::hosts_of_targets(filter.targets);
  if (!named) return found;
  std::unordered_set<std::string> names;
  named->for_each([&](std::string_view name) { names.emplace(name); });
  hosts.for_each([&](std::string_view host) {
    if (names.contains(std::string(host))) found.append(host);
  });
  return found;
}

}  // namespace

Listing status_view(const Json& payload, const ViewFilter& filter) {
  const auto status = proto::topics::parse_status(payload);
  const auto& all = status.inventory;
  const auto& online = status.online;
  const auto targets = wanted_targets(filter, all);
  const auto states = targets_by_state(status, targets);
  const IdSet& avail = states.front().second;
  Listing listing = status_columns();
  const auto add_hosts = [&](std::string_view state, bool is_online, const IdSet& ranks,
                             const text::Hostlist& hosts, const Cause& cause) {
    const bool is_up = state == "avail" || (state == "allocated" && !ranks.empty() && avail.includes(ranks));
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
  for (const auto& [state, ranks] : states) {
    const bool named = wants(filter.states, state);
    auto up = ranks & online;
    auto down = ranks - online;
    auto asked_for = ranks;
    if (state == "torpid") asked_for = targets & status.torpid;
    if (state == "offline") asked_for = targets - online;
    if (!named && !filter.states.empty()) {
      if (!wants(filter.states, "online")) up = wants(filter.states, "torpid") ? up & status.torpid : IdSet();
      if (!wants(filter.states, "offline")) down = {};
    }
    if (!up.empty()) add_row(state, true, up);
    if (!down.empty()) add_row(state, false, down);
    if (named && asked_for.empty()) add_row(state, state != "offline", {});
  }
  if (wants(filter.states, "online") && (targets & online).empty()) add_row("online", true, {});
  if (wants(filter.states, "allocated")) {
    const auto allocated = targets & status.allocated;
    const auto down = allocated - online;
    if (allocated.empty() || down != allocated) add_row("allocated", true, allocated & online);
    if (!down.empty()) add_row("allocated", false, down);
  }
  if (wants(filter.states, shrunk_state))
    add_hosts(shrunk_state, false, {}, wanted_hosts(filter, status.shrunk), {});
  if (filter.skip_empty) leave_out_empty(listing);
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
