#include "cli/views/overview.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "cli/views/text_width.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "proto/actor_json.hpp"
#include "proto/event_json.hpp"

namespace resourced::cli::views {

using proto::topics::Peers;
using proto::topics::Status;
using text::IdSet;

namespace {

/// Returns the local time without the day and the zone, which the person at the screen knows.
std::string clock(WallTime time) {
  constexpr std::string_view day = "2024-02-29T";
  constexpr std::string_view of_day = "12:00:00";
  return format_time(time).substr(day.size(), of_day.size());
}

/// One part of the screen: a heading, and rows of which some may not fit.
struct Part {
  std::string heading;
  std::vector<Line> rows;
  /// Whether the last rows are the most important.
  bool keeps_end = false;

  [[nodiscard]] std::size_t height() const { return rows.empty() ? 0 : rows.size() + 1; }
};

/// Adds as much of a part as fits into `room` lines. Returns how many it took.
std::size_t add_part(std::vector<Line>& lines, const Part& part, std::size_t room) {
  constexpr std::size_t least = 2;
  if (part.rows.empty() || room < least) return 0;
  lines.push_back({part.heading, Style::heading});
  const std::size_t fits = std::min(part.rows.size(), room - 1);
  const bool is_cut = fits < part.rows.size();
  // The last line shows how many rows are left out.
  const std::size_t shown = is_cut && !part.keeps_end ? fits - 1 : fits;
  const auto begin =
      part.keeps_end ? part.rows.end() - static_cast<std::ptrdiff_t>(shown) : part.rows.begin();
  lines.insert(lines.end(), begin, begin + static_cast<std::ptrdiff_t>(shown));
  if (is_cut && !part.keeps_end) lines.push_back({fmt::format("  and {} more", part.rows.size() - shown)});
  return fits + 1;
}

std::string_view name_of_state(std::string_view state) { return state == "exclude" ? "excluded" : state; }

Style style_of(std::string_view state) {
  if (state == "avail") return Style::good;
  if (state == "drained" || state == "draining") return Style::warning;
  return state == "offline" || state == "torpid" ? Style::bad : Style::plain;
}

class Pages {
 public:
  Pages(const Overview& overview, const Status& status, const UserName& user_name, std::size_t columns)
      : overview_(overview), status_(status), user_name_(user_name), columns_(columns) {}

  [[nodiscard]] std::string totals() const {
    const auto counts = status_.inventory.counts();
    std::string text =
        fmt::format("{} nodes, {} cores, {} gpus; {} online, {} allocated", counts.nodes, counts.cores,
                    counts.gpus, status_.online.count(), status_.allocated.count());
    if (!status_.unchecked.empty()) text += fmt::format(", {} unchecked", status_.unchecked.count());
    if (overview_.peers) text += fmt::format(", {} agents", overview_.peers->agents.count());
    return text;
  }

  [[nodiscard]] Part states() const {
    Part part{"STATE     NODES NODELIST", {}, false};
    const auto add = [&](std::string_view state, const IdSet& ranks) {
      if (ranks.empty() && state != "avail") return;
      const auto begin = fmt::format("{:<9} {:>5} ", name_of_state(state), ranks.count());
      part.rows.push_back({begin + fit_middle(hosts(ranks), room_behind(begin)), style_of(state)});
    };
    for (const auto& [state, ranks] : targets_by_state(status_, status_.inventory.ranks())) {
      add(state, ranks);
    }
    return part;
  }

  [[nodiscard]] Part partitions() const {
    Part part{"PARTITION    NODES    UP DRAINED SCHEDULER", {}, false};
    IdSet drained;
    for (const module::DrainGroup& drain : status_.drains) drained |= drain.ranks;
    for (const auto& [name, partition] : status_.partitions) {
      part.rows.push_back(
          {fmt::format("{:<12} {:>5} {:>5} {:>7} {}", fit(name, 12), partition.targets.count(),
                       ((partition.targets & status_.online) - drained).count(),
                       (partition.targets & drained).count(), scheduler_of(name))});
    }
    return part;
  }

  /// Returns the part about schedulers of targets outside of all partitions.
  [[nodiscard]] Part schedulers() const {
    Part part{"SCHEDULER    NODES SINCE", {}, false};
    if (!overview_.peers) return part;
    for (const Peers::Holder& holder : overview_.peers->holders) {
      if (!holder.partition.empty()) continue;
      part.rows.push_back(
          {fmt::format("{:<12} {:>5} {}", fit(actor(holder.by), 12), holder.targets.count(), since(holder))});
    }
    if (part.rows.empty() && status_.partitions.empty()) part.rows.push_back({"none", Style::warning});
    for (const Peers::Waiter& waiter : overview_.peers->waiting) {
      part.rows.push_back(
          {fmt::format("{:<12} waits {}{}", fit(actor(waiter.by), 12), format_time(waiter.since),
                       waiter.partition.empty() ? "" : " for " + waiter.partition)});
    }
    return part;
  }

  [[nodiscard]] Part drains() const {
    Part part{"DRAINED NODES BY           REASON / NODELIST", {}, false};
    std::vector<const module::DrainGroup*> drains;
    for (const module::DrainGroup& drain : status_.drains) drains.push_back(&drain);
    std::ranges::stable_sort(drains, {}, [](const module::DrainGroup* drain) { return drain->timestamp; });
    for (const module::DrainGroup* drain : drains) {
      const auto begin = fmt::format("{:>7} {:>5} {:<12} ", format_age(overview_.now - drain->timestamp),
                                     drain->ranks.count(), fit(actor(drain->by), 12));
      part.rows.push_back(
          {begin + cause(drain->reason.value_or("-"), hosts(drain->ranks), room_behind(begin))});
    }
    return part;
  }

  [[nodiscard]] Part events() const {
    Part part{"EVENTS", {}, true};
    for (const nlohmann::json& event : overview_.events) {
      try {
        part.rows.push_back({event_line(event)});
      } catch (const std::exception&) {
        part.rows.push_back({"an event that cannot be read"});
      }
    }
    return part;
  }

 private:
  [[nodiscard]] std::size_t room_behind(std::string_view begin) const {
    return columns_ - std::min(columns_, width_of(begin));
  }
  /// Returns a reason and hosts in some columns. Hosts are shortened before the reason, as long as they
  /// remain readable.
  [[nodiscard]] static std::string cause(std::string_view reason, std::string_view hosts,
                                         std::size_t columns) {
    constexpr std::string_view between = " / ";
    constexpr std::size_t readable = 12;
    const std::size_t both = columns - std::min(columns, between.size());
    const std::size_t for_hosts =
        std::max(std::min(readable, hosts.size()), both - std::min(both, width_of(reason)));
    const std::string shown = fit(reason, both - std::min(both, for_hosts));
    return fmt::format("{}{}{}", shown, between, fit_middle(hosts, std::min(for_hosts, hosts.size())));
  }
  [[nodiscard]] std::string hosts(const IdSet& ranks) const {
    return status_.inventory.hosts(ranks).encode();
  }
  /// Returns a line such as `22:52:45 drain node[1-2]: disk by alice`, with the date if it is older than a
  /// day.
  [[nodiscard]] std::string event_line(const nlohmann::json& event) const {
    constexpr Seconds day{86400};
    const proto::EventEntry entry = proto::read_event_entry(event);
    const bool is_old = overview_.now - entry.timestamp > day;
    std::string line =
        fmt::format("{} {}", is_old ? format_time(entry.timestamp) : clock(entry.timestamp), entry.name);
    if (entry.context == nullptr) return line;
    const nlohmann::json& context = *entry.context;
    const auto text_of = [&](const char* key) { return context.value(key, ""); };
    for (const auto& [key, sign] : {std::pair{"property-add", '+'}, {"property-remove", '-'}}) {
      const auto properties = context.find(key);
      if (properties == context.end()) continue;
      for (const auto& property : properties->items()) line += fmt::format(" {}{}", sign, property.key());
    }
    if (context.contains("nodelist")) {
      line += " " + text_of("nodelist");
    } else if (context.contains("idset")) {
      line += " " + hosts(IdSet::parse(text_of("idset")));
    } else if (context.contains("method")) {
      line += fmt::format(" ({})", text_of("method"));
    }
    if (!text_of("reason").empty()) line += ": " + text_of("reason");
    if (const auto by = context.find("by"); by != context.end())
      line += " by " + format_actor(proto::read_actor(*by), user_name_);
    return line;
  }
  [[nodiscard]] std::string actor(const std::optional<module::Actor>& by) const {
    return by ? format_actor(*by, user_name_) : "-";
  }
  [[nodiscard]] static std::string since(const Peers::Holder& holder) {
    return format_time(holder.since) +
           (holder.kept_until ? ", kept until " + format_time(*holder.kept_until) : "");
  }
  [[nodiscard]] std::string scheduler_of(const std::string& partition) const {
    if (!overview_.peers) return "-";
    for (const Peers::Holder& holder : overview_.peers->holders) {
      if (holder.partition == partition) return fmt::format("{} since {}", actor(holder.by), since(holder));
    }
    return "none";
  }

  const Overview& overview_;
  const Status& status_;
  const UserName& user_name_;
  std::size_t columns_;
};

}  // namespace

Line live_line(const Overview& overview, std::size_t columns) {
  // A narrow screen cuts the end of this line.
  Line line{fmt::format("live {} {}", clock(overview.now), overview.uri), Style::title};
  if (overview.loss) {
    line = {fmt::format("NOT LIVE since {}: {}", clock(overview.lost_at), *overview.loss), Style::alarm};
  }
  line.text = fit(line.text, columns);
  return line;
}

std::vector<Line> render_overview(const Overview& overview, Size size, const UserName& user_name) {
  std::vector<Line> lines{live_line(overview, size.columns)};
  if (overview.status == nullptr) {
    lines.push_back({"the daemon has no inventory yet", Style::warning});
  } else {
    const Pages pages(overview, *overview.status, user_name, size.columns);
    lines.push_back({pages.totals()});
    const auto room = [&] { return size.rows - std::min(size.rows, lines.size()); };
    add_part(lines, pages.states(), room());
    // Each part gets the lines that it needs, as long as the later ones keep a share.
    const Part partitions = pages.partitions();
    const Part schedulers = pages.schedulers();
    const Part drains = pages.drains();
    constexpr std::size_t share = 3;
    add_part(lines, partitions, std::min(partitions.height(), room() / share + 1));
    add_part(lines, schedulers, std::min(schedulers.height(), room() / share + 1));
    add_part(lines, drains, std::min(drains.height(), room() / 2));
    add_part(lines, pages.events(), room());
  }
  if (lines.size() > size.rows) lines.resize(size.rows);
  for (Line& line : lines) line.text = fit(line.text, size.columns);
  return lines;
}

}  // namespace resourced::cli::views
