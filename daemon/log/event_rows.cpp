#include "daemon/log/event_rows.hpp"

#include <utility>

#include "core/error.hpp"
#include "daemon/log/checksum.hpp"

namespace resourced::daemon::log {

std::int64_t EventRow::sum() const noexcept {
  Checksum sum;
  sum.add(static_cast<std::int64_t>(sequence)).add(to_number(timestamp)).add(name).add(text).add(hosts);
  if (resources) {
    sum.add(*resources);
  } else {
    sum.add_null();
  }
  // Rows from before there was a ledger have checksums without it.
  if (ledger != 0) sum.add(static_cast<std::int64_t>(ledger));
  return sum.value();
}

std::int64_t resource_set_id(std::string_view text) noexcept { return Checksum().add(text).value(); }

std::int64_t block_sum(std::int64_t block, std::string_view hosts) noexcept {
  return Checksum().add(block).add(hosts).value();
}

EventRows::EventRows(Database& database, HostIds& hosts, Sequence last)
    : hosts_(hosts),
      insert_event_(database,
                    "INSERT INTO event(sequence, timestamp, name, text, hosts, resources, sum, ledger) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
      insert_host_(database, "INSERT INTO known_host(id, name) VALUES (?, ?)"),
      insert_block_(database, "INSERT OR REPLACE INTO event_block(block, hosts, sum) VALUES (?, ?, ?)"),
      put_resources_(database, put_resource_set),
      read_hosts_(database,
                  "SELECT sequence, timestamp, name, text, hosts, resources, sum, ledger FROM event "
                  "WHERE sequence BETWEEN ? AND ? ORDER BY sequence") {
  resume(last);
  resume_ledger(last);
}

// Events after the last whole one count as others than records of the ledger, so that no reader passes over
// them.
void EventRows::resume_ledger(Sequence last) {
  for (Sequence back = 0; back < block_size && back < last; ++back) {
    const auto sequence = static_cast<std::int64_t>(last - back);
    if (!read_hosts_.bind(1, sequence).bind(2, sequence).step()) continue;
    const std::string name = read_hosts_.text(2);
    const std::string text = read_hosts_.text(3);
    const std::string ids = read_hosts_.text(4);
    EventRow row{last - back, read_hosts_.time(1), name, text, ids, {}, {}};
    if (!read_hosts_.is_null(5)) row.resources = read_hosts_.integer(5);
    row.ledger = static_cast<Sequence>(read_hosts_.integer(7));
    const bool is_whole = row.sum() == read_hosts_.integer(6);
    read_hosts_.reset();
    if (!is_whole) continue;
    ledger_ = row.ledger;
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
      const std::string name = read_hosts_.text(2);
      const std::string text = read_hosts_.text(3);
      const std::string ids = read_hosts_.text(4);
      EventRow row{
          static_cast<Sequence>(read_hosts_.integer(0)), read_hosts_.time(1), name, text, ids, {}, {}};
      if (!read_hosts_.is_null(5)) row.resources = read_hosts_.integer(5);
      row.ledger = static_cast<Sequence>(read_hosts_.integer(7));
      if (row.sum() != read_hosts_.integer(6)) throw Error(EBADMSG, "damaged");
      *block_hosts_ |= text::IdSet::parse(ids);
    }
  } catch (const Error&) {
    // A damaged row. The block gets no row of its own then, so readers look at each of its events and report
    // it.
    read_hosts_.reset();
    block_hosts_.reset();
  }
}

void EventRows::write(const New& event) {
  const auto block = static_cast<std::int64_t>(event.sequence / block_size);
  if (block != block_) {
    close_block();
    block_ = block;
    block_hosts_.emplace();
  }
  const std::size_t known = hosts_.size();
  const HostIds::Numbered hosts = hosts_.number(*event.hosts);
  for (std::size_t i = 0; i < hosts.added.size(); ++i) {
    insert_host_.bind(1, static_cast<std::int64_t>(known + i))
        .bind(2, std::string_view(hosts.added[i]))
        .run();
  }
  if (block_hosts_) *block_hosts_ |= hosts.ids;

  const std::string ids = hosts.ids.encode();
  if (event.of_ledger) ++ledger_;
  EventRow row{event.sequence, event.timestamp, event.name, event.text, ids, std::nullopt, ledger_};
  insert_event_.bind(1, static_cast<std::int64_t>(row.sequence))
      .bind(2, row.timestamp)
      .bind(3, row.name)
      .bind(4, row.text)
      .bind(5, row.hosts);
  if (event.resources != nullptr) {
    row.resources = resource_set_id(*event.resources);
    insert_event_.bind(6, *row.resources);
    put_resources_.bind(1, *row.resources)
        .bind(2, std::string_view(*event.resources))
        .bind(3, static_cast<std::int64_t>(row.sequence))
        .run();
  }
  insert_event_.bind(7, event.is_damaged ? std::int64_t{0} : row.sum())
      .bind(8, static_cast<std::int64_t>(row.ledger))
      .run();
}

void EventRows::close_block() {
  if (!block_hosts_) return;
  const std::string hosts = block_hosts_->encode();
  insert_block_.bind(1, block_).bind(2, std::string_view(hosts)).bind(3, block_sum(block_, hosts)).run();
}

void load_hosts(Database& database, HostIds& hosts) {
  Statement known(database, "SELECT id, name FROM known_host ORDER BY id");
  while (known.step()) {
    if (known.integer(0) != static_cast<std::int64_t>(hosts.size()))
      throw damaged_store(database.path(), "known_host has a gap");
    hosts.add(known.text(1));
  }
}

}  // namespace resourced::daemon::log
