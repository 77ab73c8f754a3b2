#include "daemon/log/store_reader.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "os/sha256.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::log {

using text::IdSet;

namespace {

struct Reset {
  Statement& statement;
  ~Reset() { statement.reset(); }
};

}  // namespace

StoreReader::StoreReader(Database& database, const HostIds& hosts)
    : database_(database),
      hosts_(hosts),
      events_(database, fmt::format("SELECT {} FROM event WHERE sequence BETWEEN ? AND ? ORDER BY sequence",
                                    event_columns)
                            .c_str()),
      mark_(database, fmt::format("SELECT {} FROM event WHERE sequence = ?", event_columns).c_str()),
      block_(database, "SELECT hosts, sum FROM event_block WHERE block = ?"),
      document_(database, "SELECT text FROM document WHERE name = ?"),
      newest_(database, last_event_query),
      trimmed_(database, "SELECT sequence, timestamp, sum FROM trimmed") {}

void StoreReader::fail(Sequence sequence, std::string_view what) const {
  throw Error(EBADMSG,
              fmt::format("{}: event {} of the log is damaged ({}); ask for what is newer, or restore a "
                          "backup",
                          database_.path(), sequence, what));
}

StoreReader::Trimmed StoreReader::trimmed() {
  Trimmed trimmed;
  bool is_whole = true;
  if (trimmed_.step()) {
    trimmed = {static_cast<Sequence>(trimmed_.integer(0)), trimmed_.time(1)};
    is_whole = trimmed_sum(trimmed.sequence, trimmed.timestamp) == trimmed_.integer(2);
  }
  trimmed_.reset();
  if (!is_whole) throw damaged_store(database_.path(), "table trimmed");
  return trimmed;
}

Sequence StoreReader::newest() {
  newest_.step();
  const auto newest = static_cast<Sequence>(newest_.integer(0));
  newest_.reset();
  return newest;
}

StoreReader::Mark StoreReader::mark_of(Sequence sequence) {
  const Reset reset{mark_};
  if (!mark_.bind(1, static_cast<std::int64_t>(sequence)).step()) fail(sequence, "missing");
  const EventText text(mark_);
  const EventRow row = text.row(mark_);
  if (!text.is_whole(mark_)) fail(sequence, "it does not match its checksum");
  return {row.timestamp, sequence - row.ledger, proto::is_ledger_name(row.name)};
}

StoreReader::LastTimestamp StoreReader::last_timestamp() {
  const ReadTransaction transaction(database_);
  const Trimmed dropped = trimmed();
  LastTimestamp found{dropped.timestamp, std::nullopt};
  const Sequence last = newest();
  for (Sequence back = 0; back < most_looked_at && last - back > dropped.sequence; ++back) {
    try {
      found.timestamp = timestamp_of(last - back);
      break;
    } catch (const Error& error) {
      if (error.errnum() != EBADMSG) throw;
      if (!found.damage) found.damage = error;
    }
  }
  return found;
}

WallTime StoreReader::timestamp_before(Sequence first) {
  try {
    return timestamp_of(first - 1);
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    return timestamp_of(first);
  }
}

// A binary search, which skips damaged events, so that newer ones can still be read.
Sequence StoreReader::first_not(const std::function<bool(const Mark&)>& is_before, Sequence oldest,
                                Sequence newest) {
  Sequence end = newest + 1;
  while (oldest < end) {
    const Sequence middle = oldest + (end - oldest) / 2;
    Sequence probe = middle;
    const std::optional<Mark> mark = mark_at_or_after(probe, end);
    if (mark && is_before(*mark)) {
      oldest = probe + 1;
    } else {
      end = middle;
    }
  }
  return oldest;
}

std::optional<StoreReader::Mark> StoreReader::mark_at_or_after(Sequence& sequence, Sequence end) {
  const Sequence last = std::min(end, sequence + most_looked_at);
  for (; sequence < last; ++sequence) {
    try {
      return mark_of(sequence);
    } catch (const Error& error) {
      if (error.errnum() != EBADMSG) throw;
    }
  }
  return std::nullopt;
}

Sequence StoreReader::after_known(const EventFilter& filter, Sequence first, Sequence last) {
  HistoryPage page;
  page.next = first;
  constexpr std::size_t most_bytes = std::size_t{1} << 20U;
  try {
    if (filter.known > 0) read(page, filter, first, last, most_bytes);
  } catch (const Error&) {
    // The page that begins with the damage reports it.
  }
  std::size_t left = filter.known;
  for (const LoggedEvent& event : page.events) {
    if (left == 0 || event.timestamp != *filter.since) break;
    first = event.sequence + 1;
    --left;
  }
  return first;
}

Sequence StoreReader::first_of_newest(std::size_t most, Sequence oldest, Sequence newest) {
  // Damaged events at the end of the log count as not of the ledger.
  Sequence others = newest;
  for (Sequence back = 0; back < most_looked_at && newest - back >= oldest; ++back) {
    Sequence whole = newest - back;
    if (const auto mark = mark_at_or_after(whole, newest - back + 1)) {
      others = mark->others + back;
      break;
    }
  }
  if (others < most) return oldest;
  const Sequence least = others - most + 1;
  const Sequence first = first_not([least](const Mark& mark) { return mark.others < least; }, oldest, newest);
  // The search cannot tell the number of a damaged event. The first undamaged event after it does.
  Sequence whole = first;
  const auto mark = mark_at_or_after(whole, newest + 1);
  return mark && mark->others == least && !mark->of_ledger ? whole : first;
}

// Doubles its steps, then halves them. Each bound is an event whose checksum holds, and that counts as many
// other events as the first: so all between are of the ledger. If one is damaged, the events are looked at
// one by one.
Sequence StoreReader::skip_ledger(Sequence of_ledger, Sequence to) {
  try {
    const Sequence others = mark_of(of_ledger).others;
    const auto is_run = [&](Sequence last) { return mark_of(last).others == others; };
    Sequence step = 1;
    Sequence reached = of_ledger;
    while (reached < to && is_run(std::min(to, reached + step))) {
      reached = std::min(to, reached + step);
      step *= 2;
    }
    // The first event of another kind is after `reached` and at most `step` away.
    for (step /= 2; step > 0; step /= 2) {
      if (reached + step <= to && is_run(reached + step)) reached += step;
    }
    return reached + 1;
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    return of_ledger + 1;
  }
}

HistoryStart StoreReader::start(const EventFilter& filter, std::size_t most, WallTime horizon) {
  if (filter.targets) {
    std::optional<std::string> unknown;
    filter.targets->strangers.for_each([&](std::string_view host) {
      if (!unknown && !hosts_.find(host)) unknown = host;
    });
    if (unknown) return {0, std::nullopt, unknown};
  }
  const ReadTransaction transaction(database_);
  const Trimmed dropped = trimmed();
  const Sequence last = newest();
  // The newest event is kept whatever its age.
  const Sequence oldest = dropped.sequence + 1;
  const Sequence kept =
      horizon > WallTime() ? first_since(horizon, oldest, std::max(last, oldest) - 1) : oldest;
  HistoryStart start{kept, std::nullopt, std::nullopt};
  if (filter.after && *filter.after > last) {
    start.failure = Error(EINVAL, fmt::format("after: there is no event {}", *filter.after));
    return start;
  }
  if (filter.since) {
    start.first = after_known(filter, first_since(*filter.since, kept, last), last);
  } else if (!filter.targets && !filter.after && last >= most) {
    start.first =
        filter.audiences.allocations ? std::max(kept, last - most + 1) : first_of_newest(most, kept, last);
  }
  if (filter.after) {
    start.first = std::max(start.first, *filter.after + 1);
    if (*filter.after + 1 >= kept) return start;
  }
  // Events before `since` were not asked for, so their absence is no gap.
  if (start.first == 1 || (filter.since && start.first > kept)) return start;
  const WallTime before = start.first == oldest ? dropped.timestamp : timestamp_before(start.first);
  if (!filter.since || before >= *filter.since) start.truncated = before;
  return start;
}

Sequence StoreReader::last_until(WallTime at) {
  const ReadTransaction transaction(database_);
  const Trimmed dropped = trimmed();
  const Sequence oldest = dropped.sequence + 1;
  const Sequence last = std::max(newest(), dropped.sequence);
  const Sequence after = first_not([at](const Mark& mark) { return mark.timestamp <= at; }, oldest, last);
  // Report a damaged event, which may belong before `at`.
  if (after <= last) (void)mark_of(after);
  return after == oldest && at < dropped.timestamp ? 0 : after - 1;
}

WallTime StoreReader::time_of(Sequence sequence) {
  const ReadTransaction transaction(database_);
  const Trimmed dropped = trimmed();
  return sequence == dropped.sequence ? dropped.timestamp : timestamp_of(sequence);
}

Sequence StoreReader::dropped() { return trimmed().sequence; }

Sequence StoreReader::last() { return newest(); }

HistoryPage StoreReader::page(const EventFilter& filter, Sequence from, Sequence to, std::size_t limit) {
  const ReadTransaction transaction(database_);
  HistoryPage page;
  page.next = from;
  page.has_gap = from <= trimmed().sequence;
  if (page.has_gap) return page;
  try {
    read(page, filter, from, to, limit);
  } catch (const Error&) {
    // The events before the damaged one are whole: return them. The next page begins with the damage.
    if (page.events.empty()) throw;
  }
  return page;
}

Sequence StoreReader::skip_blocks(const IdSet& hosts, Sequence from, Sequence to, Budget& budget) {
  while (from <= to) {
    const auto block = static_cast<std::int64_t>(from / block_size);
    if (!block_.bind(1, block).step()) break;
    const std::string ids = block_.text(0);
    const bool is_whole = block_sum(block, ids) == block_.integer(1);
    block_.reset();
    if (!budget.spend(ids.size())) break;
    // The events of a damaged block are looked at one by one.
    if (!is_whole || IdSet::parse(ids).intersects(hosts)) break;
    from = static_cast<Sequence>(block + 1) * block_size;
  }
  return std::min(from, to + 1);
}

bool StoreReader::begins_complete() {
  Statement first(database_, "SELECT rest IS NOT NULL FROM event WHERE sequence = 1");
  return first.step() && first.integer(0) != 0;
}

std::shared_ptr<const std::string> StoreReader::document(const std::string& name) {
  std::shared_ptr<const std::string> text;
  if (document_.bind(1, std::string_view(name)).step())
    text = std::make_shared<const std::string>(document_.text(0));
  document_.reset();
  if (!text || os::sha256(*text) != name)
    throw damaged_store(database_.path(), fmt::format("document {}", name));
  return text;
}

std::shared_ptr<const std::string> StoreReader::resources_of(Sequence sequence, const std::string& name) {
  try {
    return document(name);
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    fail(sequence, "its resource set");
  }
}

void StoreReader::read(HistoryPage& page, const EventFilter& filter, Sequence from, Sequence to,
                       std::size_t limit) {
  std::optional<IdSet> hosts;
  if (filter.targets) hosts = hosts_.find(filter.targets->hosts()) | hosts_.find(filter.targets->strangers);
  Budget budget;
  page.next = hosts ? skip_blocks(*hosts, from, to, budget) : from;
  PageLimit room(limit);
  const Reset reset{events_};
  while (page.next <= to) {
    events_.bind(1, static_cast<std::int64_t>(page.next)).bind(2, static_cast<std::int64_t>(to));
    // Reads up to the end of a block, as the next block may be skipped.
    const Sequence block_end = page.next - page.next % block_size + block_size;
    while (page.next <= to && (!hosts || page.next < block_end)) {
      if (!events_.step()) fail(page.next, "missing");
      EventText text(events_);
      const EventRow row = text.row(events_);
      if (row.sequence != page.next) fail(page.next, "missing");
      if (!text.is_whole(events_)) fail(page.next, "it does not match its checksum");
      if (!budget.spend(text.text.size() + text.hosts.size())) return;
      const Audience audience = audience_in_store(row.name);
      if (audience == Audience::ledger && !filter.audiences.allocations) {
        events_.reset();
        page.next = skip_ledger(page.next, to);
        break;
      }
      const bool concerns =
          filter.audiences.include(audience) && (!hosts || IdSet::parse(text.hosts).intersects(*hosts));
      if (concerns && !(filter.since && row.timestamp < *filter.since)) {
        const bool defines = row.name == proto::define_name;
        if (!room.admit(text.text.size(), defines)) return;
        LoggedEvent event{row.sequence, row.timestamp, std::move(text.text), defines, nullptr, audience};
        if (filter.audiences.hidden) event.rest = std::move(text.rest);
        if (text.resources && !filter.audiences.hidden)
          event.resources = resources_of(row.sequence, *text.resources);
        page.events.push_back(std::move(event));
      }
      ++page.next;
    }
    events_.reset();
    if (hosts) page.next = skip_blocks(*hosts, page.next, to, budget);
  }
}

}  // namespace resourced::daemon::log
