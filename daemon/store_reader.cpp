#include "daemon/store_reader.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::daemon {
namespace {

LoggedEvent read_event(const Statement& row) {
  return {static_cast<Sequence>(row.integer(0)), row.real(1), row.text(2), row.text(3) == "resource-define"};
}

// Events of many hosts are not in the index; their nodelist is in the text.
bool concerns(const std::string& text, const std::unordered_set<std::string_view>& hosts) {
  const auto event = nlohmann::json::parse(text, nullptr, false);
  if (!event.is_object() || !event.contains("context")) return false;
  const auto& context = event["context"];
  const auto nodelist = context.find("nodelist");
  if (nodelist == context.end() || !nodelist->is_string()) return false;
  const Hostlist concerned = Hostlist::parse(nodelist->get_ref<const std::string&>());
  // Looking for a host costs what the runs of the list do, and going through them all what the hosts do.
  constexpr std::size_t few = 16;
  if (hosts.size() <= few) {
    return std::ranges::any_of(hosts,
                               [&](std::string_view host) { return concerned.find(host).has_value(); });
  }
  bool found = false;
  concerned.for_each([&](std::string_view host) { found = found || hosts.contains(host); });
  return found;
}

// 0 for a statement that finds none.
Sequence number(Statement& statement) {
  const std::int64_t value = statement.step() ? statement.integer(0) : 0;
  statement.reset();
  return static_cast<Sequence>(value);
}

}  // namespace

StoreReader::StoreReader(Database& database)
    : all_(database,
           "SELECT sequence, timestamp, text, name FROM event WHERE sequence BETWEEN ? AND ? "
           "ORDER BY sequence LIMIT ?"),
      of_host_(
          database,
          "SELECT e.sequence, e.timestamp, e.text, e.name FROM event_host h JOIN event e USING (sequence) "
          "WHERE h.host = ? AND h.sequence BETWEEN ? AND ? ORDER BY h.sequence LIMIT ?"),
      wide_(database,
            "SELECT sequence, timestamp, text, name FROM event WHERE wide = 1 AND sequence BETWEEN ? AND ? "
            "ORDER BY sequence LIMIT ?"),
      first_since_(database,
                   "SELECT sequence FROM event WHERE timestamp >= ? ORDER BY timestamp, sequence LIMIT 1"),
      newest_(database, "SELECT coalesce(max(sequence), 0) FROM event"),
      oldest_(database, "SELECT min(sequence) FROM event"),
      timestamp_of_(database, "SELECT timestamp FROM event WHERE sequence = ?"),
      trimmed_(database, "SELECT timestamp FROM trimmed"),
      last_timestamp_(database, "SELECT timestamp FROM event ORDER BY sequence DESC LIMIT 1"),
      known_host_(database,
                  "SELECT EXISTS(SELECT 1 FROM event_host WHERE host = ?1) OR "
                  "EXISTS(SELECT 1 FROM shrunk WHERE host = ?1)") {}

bool StoreReader::knows(const std::string& host) {
  known_host_.bind(1, std::string_view(host)).step();
  const bool known = known_host_.integer(0) != 0;
  known_host_.reset();
  return known;
}

HistoryStart StoreReader::start(const EventFilter& filter, std::size_t most) {
  const auto unknown =
      std::ranges::find_if_not(filter.strangers, [this](const std::string& host) { return knows(host); });
  if (unknown != filter.strangers.end()) return {0, std::nullopt, *unknown};
  const Sequence newest = number(newest_);
  const Sequence oldest = std::max<Sequence>(number(oldest_), 1);
  HistoryStart start{oldest, std::nullopt, std::nullopt};
  if (filter.since) {
    const Sequence first = number(first_since_.bind(1, *filter.since));
    start.first = first == 0 ? newest + 1 : first;
  } else if (!filter.hosts && newest >= most) {
    start.first = std::max(oldest, newest - most + 1);
  }
  if (start.first > oldest && !filter.since) {
    if (timestamp_of_.bind(1, static_cast<std::int64_t>(start.first - 1)).step())
      start.truncated = timestamp_of_.real(0);
    timestamp_of_.reset();
    return start;
  }
  // Nothing older is left in the store; it matters to those whose time reaches back that far.
  if (trimmed_.step()) {
    const double last = trimmed_.real(0);
    if (!filter.since || last >= *filter.since) start.truncated = last;
  }
  trimmed_.reset();
  return start;
}

HistoryPage StoreReader::page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit) {
  HistoryPage page = filter.hosts ? page_of_hosts(filter, from, to, limit) : page_of_all(from, to, limit);
  const Sequence oldest = number(oldest_);
  page.has_gap = oldest == 0 || from < oldest;
  if (filter.since) {
    std::erase_if(page.events, [&](const LoggedEvent& event) { return event.timestamp < *filter.since; });
  }
  return page;
}

HistoryPage StoreReader::page_of_all(Sequence from, Sequence to, std::size_t limit) {
  HistoryPage page;
  all_.bind(1, static_cast<std::int64_t>(from))
      .bind(2, static_cast<std::int64_t>(to))
      .bind(3, static_cast<std::int64_t>(limit));
  while (all_.step()) page.events.push_back(read_event(all_));
  page.next = page.events.size() < limit ? to + 1 : page.events.back().sequence + 1;
  return page;
}

HistoryPage StoreReader::page_of_hosts(const EventFilter& filter, Sequence from, Sequence to,
                                       std::size_t limit) {
  std::map<Sequence, LoggedEvent> found;
  Sequence complete = to;
  for (const std::string& host : *filter.hosts) {
    std::size_t count = 0;
    Sequence last = to;
    of_host_.bind(1, std::string_view(host))
        .bind(2, static_cast<std::int64_t>(from))
        .bind(3, static_cast<std::int64_t>(to))
        .bind(4, static_cast<std::int64_t>(limit));
    while (of_host_.step()) {
      LoggedEvent event = read_event(of_host_);
      last = event.sequence;
      found.emplace(event.sequence, std::move(event));
      ++count;
    }
    if (count == limit) complete = std::min(complete, last);
  }
  const std::unordered_set<std::string_view> hosts(filter.hosts->begin(), filter.hosts->end());
  // Looked at one by one, so a page ends where enough of them were, whether they concern the hosts or not.
  std::size_t looked_at = 0;
  Sequence last_wide = complete;
  wide_.bind(1, static_cast<std::int64_t>(from))
      .bind(2, static_cast<std::int64_t>(complete))
      .bind(3, static_cast<std::int64_t>(limit));
  while (wide_.step()) {
    LoggedEvent event = read_event(wide_);
    last_wide = event.sequence;
    ++looked_at;
    if (concerns(event.text, hosts)) found.emplace(event.sequence, std::move(event));
  }
  if (looked_at == limit) complete = std::min(complete, last_wide);
  HistoryPage page;
  page.next = complete + 1;
  for (auto& [sequence, event] : found) {
    if (sequence > complete) break;
    if (page.events.size() == limit) {
      page.next = sequence;
      break;
    }
    page.events.push_back(std::move(event));
  }
  return page;
}

double StoreReader::last_timestamp() {
  const double last = last_timestamp_.step() ? last_timestamp_.real(0) : 0;
  last_timestamp_.reset();
  return last;
}

}  // namespace resourced::daemon
