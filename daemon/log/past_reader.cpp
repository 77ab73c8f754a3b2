#include "daemon/log/past_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/log/event_rows.hpp"
#include "proto/event_json.hpp"
#include "proto/message.hpp"
#include "proto/snapshot_json.hpp"

namespace resourced::daemon::log {

namespace {

[[noreturn]] void not_kept() {
  throw Error(ENODATA, "the state at that time is not recorded, or not kept any more");
}

}  // namespace

std::optional<module::Event> event_of(const LoggedEvent& logged) {
  auto read = json_text::read_json(logged.text, proto::max_json_depth, json_text::JsonManners::lenient);
  const auto* entry = std::get_if<nlohmann::json>(&read);
  if (entry == nullptr) throw Error(EINVAL, "is not JSON");
  if (!logged.defines) return proto::decode_event(*entry);
  if (!logged.resources) return std::nullopt;
  module::DefineEvent define;
  define.inventory = std::make_shared<const rset::ResourceSet>(rset::ResourceSet::parse(*logged.resources));
  return module::Event{logged.timestamp, std::move(define)};
}

// One statement reads a snapshot and its resources: a trim could come between two.
PastReader::PastReader(Database& database, StoreReader& log)
    : database_(database),
      log_(log),
      find_(database,
            "SELECT snapshot.sequence, snapshot.resources, snapshot.text, snapshot.sum, resource_set.text "
            "FROM snapshot LEFT JOIN resource_set ON resource_set.id = snapshot.resources "
            "WHERE snapshot.sequence <= ? ORDER BY snapshot.sequence DESC LIMIT 1"),
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

Sequence PastReader::snapshot_until(Sequence last) { return one(until_, last); }

Sequence PastReader::snapshot_from(Sequence first) { return one(from_, first); }

PastReader::Search PastReader::begin(WallTime at) {
  const Sequence last = log_.last_until(at);
  if (last == 0) not_kept();
  return begin_at(last);
}

PastReader::Search PastReader::begin_at(Sequence last) {
  if (!find_.bind(1, static_cast<std::int64_t>(last)).step()) {
    find_.reset();
    not_kept();
  }
  Search search;
  search.last = last;
  search.at = static_cast<Sequence>(find_.integer(0));
  const std::int64_t id = find_.integer(1);
  const std::string text = find_.text(2);
  const bool is_whole = snapshot_sum(search.at, id, text) == find_.integer(3);
  const std::string resources = find_.is_null(4) ? "" : find_.text(4);
  find_.reset();
  try {
    if (!is_whole) throw Error(EBADMSG, "it does not match its checksum");
    if (resource_set_id(resources) != id) throw Error(EBADMSG, "its resource set");
    search.states = proto::parse_snapshot(text);
    search.states.inventory = rset::ResourceSet::parse(resources);
  } catch (const Error& error) {
    throw Error(EBADMSG, fmt::format("{}: the snapshot of event {} is damaged ({}); restore a backup",
                                     database_.path(), search.at, error.what()));
  }
  return search;
}

void PastReader::advance(Search& search) {
  if (search.is_done()) return;
  EventFilter all;
  all.allocations = true;
  const Sequence to = std::min(search.last, search.at + events_per_snapshot);
  const HistoryPage page = log_.page(all, search.at + 1, to, events_per_snapshot);
  if (page.has_gap) not_kept();
  for (const LoggedEvent& logged : page.events) {
    try {
      if (const auto event = event_of(logged)) module::fold(*event, search.states);
    } catch (const Error& error) {
      throw Error(EBADMSG, fmt::format("{}: event {} of the log cannot be applied: {}", database_.path(),
                                       logged.sequence, error.what()));
    }
  }
  search.at = page.next - 1;
}

}  // namespace resourced::daemon::log
