#include "daemon/log/past_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "proto/allocation_json.hpp"
#include "proto/event_json.hpp"
#include "proto/message.hpp"
#include "proto/state_json.hpp"

namespace resourced::daemon::log {

namespace {

[[noreturn]] void not_kept() {
  throw Error(ENODATA, "the state at that time is not recorded, or not kept any more");
}

}  // namespace

module::Event event_of(const LoggedEvent& logged, const proto::FindDocument& find) {
  if (!logged.rest) not_kept();
  auto read = json_text::read_json(logged.text, proto::max_json_depth, json_text::JsonManners::lenient,
                                   std::numeric_limits<std::size_t>::max(), proto::resource_keys);
  const auto* entry = std::get_if<nlohmann::json>(&read);
  if (entry == nullptr) throw Error(EINVAL, "is not JSON");
  return proto::decode_complete(*entry, *logged.rest, find);
}

PastReader::PastReader(Database& database, StoreReader& log)
    : database_(database),
      log_(log),
      find_(database, "SELECT text, sum FROM snapshot WHERE sequence = ?"),
      until_(database, "SELECT coalesce(max(sequence), 0) FROM snapshot WHERE sequence <= ?"),
      from_(database, "SELECT coalesce(min(sequence), 0) FROM snapshot WHERE sequence >= ?"),
      size_(database,
            "SELECT coalesce((SELECT length(CAST(text AS BLOB)) FROM snapshot WHERE sequence = ?), 0)") {}

Sequence PastReader::one(Statement& statement, Sequence sequence) {
  statement.bind(1, static_cast<std::int64_t>(sequence)).step();
  const auto found = static_cast<Sequence>(statement.integer(0));
  statement.reset();
  return found;
}

Sequence PastReader::stride_after(Sequence snapshot) { return stride_after_snapshot(one(size_, snapshot)); }

Sequence PastReader::reachable(Sequence wanted) {
  const Sequence dropped = log_.dropped();
  const Sequence base = snapshot_until(wanted);
  if (base != 0 && base >= dropped) return wanted;
  if (dropped == 0 && log_.begins_complete()) return std::max<Sequence>(wanted, 1);
  return snapshot_from(std::max<Sequence>(dropped, 1));
}

Sequence PastReader::snapshot_until(Sequence last) { return one(until_, last); }

Sequence PastReader::snapshot_from(Sequence first) { return one(from_, first); }

PastReader::Search PastReader::begin(WallTime at) {
  const ReadTransaction transaction(database_);
  const Sequence last = log_.last_until(at);
  if (last == 0) not_kept();
  return begin_at(last);
}

module::State PastReader::snapshot_of(Sequence sequence) {
  std::string text;
  std::int64_t sum = 0;
  if (find_.bind(1, static_cast<std::int64_t>(sequence)).step()) {
    text = find_.text(0);
    sum = find_.integer(1);
  }
  find_.reset();
  try {
    if (snapshot_sum(sequence, text) != sum) throw Error(EBADMSG, "it does not match its checksum");
    return proto::parse_state(text, [this](const std::string& name) { return log_.document(name); });
  } catch (const Error& error) {
    throw Error(EBADMSG, fmt::format("{}: the snapshot of event {} is damaged ({}); restore a backup",
                                     database_.path(), sequence, error.what()));
  }
}

// Reads within one transaction, as a trim may drop a snapshot or a document between two reads.
PastReader::Search PastReader::begin_at(Sequence last) {
  const ReadTransaction transaction(database_);
  Search search;
  search.last = last;
  std::optional<Error> damage;
  for (Sequence at = last; (at = snapshot_until(at)) > 0; --at) {
    try {
      search.states = snapshot_of(at);
      search.at = at;
      return search;
    } catch (const Error& error) {
      if (!damage) damage = error;
    }
  }
  if (log_.dropped() == 0 && (log_.last() == 0 || log_.begins_complete())) return search;
  if (damage) throw Error(*damage);
  not_kept();
}

module::State PastReader::last_states() {
  Search search;
  try {
    search = begin_at(log_.last());
    while (!search.is_done()) advance(search);
    return std::move(search.states);
  } catch (const Error& error) {
    if (error.errnum() == ENODATA) {
      throw Error(ENODATA, fmt::format("{}: no snapshot leads to its last event; restore a backup, or take "
                                       "another member's copy",
                                       database_.path()));
    }
    if (error.errnum() != EBADMSG || search.last == 0) throw;
  }
  // The error below names the last event before the damage: find it, one event at a time.
  try {
    while (!search.is_done()) advance(search, 1);
    return std::move(search.states);
  } catch (const Error& error) {
    const std::string_view what = error.what();
    const bool names_file = what.starts_with(database_.path());
    throw Error(
        EBADMSG,
        fmt::format("{}{}{}; take another member's copy, or give up what came after event {} with "
                    "--recover-to {}",
                    names_file ? "" : database_.path(), names_file ? "" : ": ", what, search.at, search.at));
  }
}

void PastReader::advance(Search& search, Sequence most, const Visit& visit) {
  if (search.is_done()) return;
  const ReadTransaction transaction(database_);
  EventFilter all;
  all.audiences = all_audiences;
  const proto::FindDocument find = [this](const std::string& name) { return log_.document(name); };
  const Sequence to = std::min(search.last, search.at + std::min(most, events_per_snapshot));
  const HistoryPage page = log_.page(all, search.at + 1, to, events_per_snapshot);
  if (page.has_gap) not_kept();
  for (const LoggedEvent& logged : page.events) {
    try {
      const module::Event event = event_of(logged, find);
      module::require_next(search.states, event.body);
      const bool goes_on = !visit || visit(search.states, event);
      (void)module::apply(search.states, event);
      search.at = logged.sequence;
      if (!goes_on) return;
    } catch (const Error& error) {
      if (error.errnum() == ENODATA || error.errnum() == EBADMSG) throw;
      throw Error(EBADMSG, fmt::format("{}: event {} of the log cannot be applied: {}", database_.path(),
                                       logged.sequence, error.what()));
    }
  }
  search.at = page.next - 1;
}

}  // namespace resourced::daemon::log
