#include "daemon/log/event_rows.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/checksum.hpp"
#include "os/sha256.hpp"

namespace resourced::daemon::log {

std::int64_t EventRow::sum() const noexcept {
  Checksum sum;
  const auto add = [&](const std::optional<std::string_view>& text_or_none) {
    if (text_or_none) {
      sum.add(*text_or_none);
    } else {
      sum.add_null();
    }
  };
  sum.add(static_cast<std::int64_t>(sequence)).add(to_number(timestamp)).add(name).add(text);
  add(rest);
  sum.add(hosts);
  add(resources);
  return sum.add(static_cast<std::int64_t>(ledger)).value();
}

EventText::EventText(const Statement& row)
    : name(row.text(2)),
      text(row.text(3)),
      rest(row.optional_text(4)),
      hosts(row.text(5)),
      resources(row.optional_text(6)) {}

EventRow EventText::row(const Statement& from) const {
  return {static_cast<Sequence>(from.integer(0)), from.time(1), name, text, rest, hosts, resources,
          static_cast<Sequence>(from.integer(7))};
}

bool EventText::is_whole(const Statement& from) const { return row(from).sum() == from.integer(8); }

std::int64_t trimmed_sum(Sequence sequence, WallTime timestamp) noexcept {
  return Checksum().add(static_cast<std::int64_t>(sequence)).add(to_number(timestamp)).value();
}

std::int64_t host_sum(std::int64_t id, std::string_view name) noexcept {
  return Checksum().add(id).add(name).value();
}

std::int64_t block_sum(std::int64_t block, std::string_view hosts) noexcept {
  return Checksum().add(block).add(hosts).value();
}

EventRows::EventRows(Database& database, HostIds& hosts, Sequence last)
    : hosts_(hosts),
      insert_event_(
          database,
          fmt::format("INSERT INTO event({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", event_columns).c_str()),
      insert_host_(database, "INSERT INTO known_host(id, name, sum) VALUES (?, ?, ?)"),
      insert_block_(database, "INSERT OR REPLACE INTO event_block(block, hosts, sum) VALUES (?, ?, ?)"),
      put_document_(database, put_document),
      read_hosts_(
          database,
          fmt::format("SELECT {} FROM event WHERE sequence BETWEEN ? AND ? ORDER BY sequence", event_columns)
              .c_str()) {
  resume(last);
  resume_ledger(last);
}

EventRows::EventRows(Database& database, HostIds& hosts, Sequence last, Sequence ledger)
    : EventRows(database, hosts, last) {
  ledger_ = ledger;
}

// Reads the number of records of the ledger from the last undamaged event. Damaged events after it count as
// events of other kinds, so that no reader passes over them.
void EventRows::resume_ledger(Sequence last) {
  for (Sequence back = 0; back < block_size && back < last; ++back) {
    const auto sequence = static_cast<std::int64_t>(last - back);
    if (!read_hosts_.bind(1, sequence).bind(2, sequence).step()) continue;
    const EventText text(read_hosts_);
    const Sequence ledger = text.row(read_hosts_).ledger;
    const bool is_whole = text.is_whole(read_hosts_);
    read_hosts_.reset();
    if (!is_whole) continue;
    ledger_ = ledger;
    return;
  }
}

// Reads the hosts of the open block, which has no row yet, from its events.
void EventRows::resume(Sequence last) {
  block_ = static_cast<std::int64_t>(last / block_size);
  try {
    read_hosts_.bind(1, block_ * static_cast<std::int64_t>(block_size))
        .bind(2, static_cast<std::int64_t>(last));
    while (read_hosts_.step()) {
      const EventText text(read_hosts_);
      if (!text.is_whole(read_hosts_)) throw Error(EBADMSG, "damaged");
      *block_hosts_ |= text::IdSet::parse(text.hosts);
    }
  } catch (const Error&) {
    // A row is damaged. The block gets no row of its own then, so readers look at each of its events and
    // report the damage.
    read_hosts_.reset();
    block_hosts_.reset();
  }
}

void EventRows::write(const Record& record) {
  const auto block = static_cast<std::int64_t>(record.sequence / block_size);
  if (block != block_) {
    close_block();
    block_ = block;
    block_hosts_.emplace();
  }
  const std::size_t known = hosts_.size();
  const HostIds::Numbered hosts = hosts_.number(record.hosts);
  for (std::size_t i = 0; i < hosts.added.size(); ++i) {
    const auto id = static_cast<std::int64_t>(known + i);
    insert_host_.bind(1, id)
        .bind(2, std::string_view(hosts.added[i]))
        .bind(3, host_sum(id, hosts.added[i]))
        .run();
  }
  if (block_hosts_) *block_hosts_ |= hosts.ids;

  std::optional<std::string> resources;
  const auto put = [&](std::string_view name, std::string_view text) {
    put_document_.bind(1, name).bind(2, text).bind(3, static_cast<std::int64_t>(record.sequence)).run();
  };
  for (const auto& [name, text] : record.documents) put(name, *text);
  if (record.resources) {
    resources = os::sha256(*record.resources);
    if (!record.documents.contains(*resources)) put(*resources, *record.resources);
  }
  const std::string ids = hosts.ids.encode();
  if (record.audience == Audience::ledger) ++ledger_;
  const EventRow row{
      record.sequence, record.timestamp, record.audience == Audience::nobody ? hidden_name : record.name,
      record.text,     record.rest,      ids,
      resources,       ledger_};
  insert_event_.bind(1, static_cast<std::int64_t>(row.sequence))
      .bind(2, row.timestamp)
      .bind(3, row.name)
      .bind(4, row.text)
      .bind(5, record.rest)
      .bind(6, row.hosts)
      .bind(7, resources)
      .bind(8, static_cast<std::int64_t>(row.ledger))
      .bind(9, row.sum())
      .run();
}

void EventRows::close_block() {
  if (!block_hosts_) return;
  const std::string hosts = block_hosts_->encode();
  insert_block_.bind(1, block_).bind(2, std::string_view(hosts)).bind(3, block_sum(block_, hosts)).run();
}

void load_hosts(Database& database, HostIds& hosts) {
  Statement known(database, "SELECT id, name, sum FROM known_host ORDER BY id");
  while (known.step()) {
    if (known.integer(0) != static_cast<std::int64_t>(hosts.size()))
      throw damaged_store(database.path(), "known_host has a gap");
    if (host_sum(known.integer(0), known.text(1)) != known.integer(2))
      throw damaged_store(database.path(), fmt::format("host {} of known_host", known.integer(0)));
    if (hosts.find(known.text(1)))
      throw damaged_store(database.path(), fmt::format("host {} of known_host, a name that another one has",
                                                       known.integer(0)));
    hosts.add(known.text(1));
  }
}

}  // namespace resourced::daemon::log
