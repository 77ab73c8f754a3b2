#include "daemon/store_writer.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/store_schema.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon {
namespace {

// An event of more hosts than this is not in the index by host: it would cost more than looking at it.
constexpr std::size_t widest_indexed = 64;

}  // namespace

// The exclusive locking mode keeps a second daemon out for as long as the file is open, and spares the shared
// memory of the write-ahead log; one that was killed a moment ago is waited for. FULL: a commit that returned
// is on disk (one fdatasync of the log).
StoreWriter::Opened::Opened(const std::string& path) : Database(path) {
  try {
    execute(
        "PRAGMA busy_timeout=2000;"
        "PRAGMA locking_mode=EXCLUSIVE;");
    // Before anything is changed: even the mode of the log is kept in the file.
    check_schema(*this);
    execute(
        "PRAGMA journal_mode=WAL;"
        "PRAGMA synchronous=FULL;"
        "BEGIN IMMEDIATE; COMMIT;");
    prepare_schema(*this);
  } catch (const Error& error) {
    if (error.errnum() == EBUSY) {
      throw Error(
          EBUSY,
          fmt::format("{}: in use by another resourced; stop it, or give this one another --state", path));
    }
    throw;
  }
}

StoreWriter::StoreWriter(const std::string& path)
    : database_(path),
      insert_event_(database_,
                    "INSERT INTO event(sequence, timestamp, name, text, wide) VALUES (?, ?, ?, ?, ?)"),
      insert_host_(database_, "INSERT OR IGNORE INTO event_host(sequence, host) VALUES (?, ?)"),
      trim_find_(
          database_,
          "SELECT max(sequence), max(timestamp), count(*) FROM (SELECT sequence, timestamp FROM event "
          "WHERE timestamp < ? AND sequence < (SELECT max(sequence) FROM event) ORDER BY sequence LIMIT ?)"),
      trim_events_(database_, "DELETE FROM event WHERE sequence <= ?"),
      trim_hosts_(database_, "DELETE FROM event_host WHERE sequence <= ?"),
      put_trimmed_(database_, "INSERT OR REPLACE INTO trimmed(id, timestamp) VALUES (1, ?)"),
      put_drain_(database_,
                 "INSERT OR REPLACE INTO drain(rank, host, timestamp, reason) VALUES (?, ?, ?, ?)"),
      take_drain_(database_, "DELETE FROM drain WHERE rank = ?"),
      forget_drains_(database_, "DELETE FROM drain"),
      put_property_(database_, "INSERT OR REPLACE INTO property(name, host, present) VALUES (?, ?, ?)"),
      take_property_(database_, "DELETE FROM property WHERE name = ? AND host = ?"),
      forget_properties_(database_, "DELETE FROM property"),
      put_shrunk_(database_, "INSERT OR IGNORE INTO shrunk(host) VALUES (?)"),
      put_expiration_(database_, "INSERT OR REPLACE INTO expiration(id, value, configured) VALUES (1, ?, ?)"),
      put_inventory_(database_,
                     "INSERT OR REPLACE INTO inventory(id, method, text, replaced) VALUES (1, ?, ?, ?)"),
      last_sequence_(database_, "SELECT coalesce(max(sequence), 0) FROM event") {}

Sequence StoreWriter::last_sequence() {
  last_sequence_.step();
  const auto last = static_cast<Sequence>(last_sequence_.integer(0));
  last_sequence_.reset();
  return last;
}

RecordedState StoreWriter::load() {
  RecordedState state;
  Statement drains(database_, "SELECT rank, host, timestamp, reason FROM drain ORDER BY rank");
  while (drains.step()) {
    state.drains.push_back(
        {static_cast<IdSet::Id>(drains.integer(0)), drains.text(1), drains.real(2), drains.optional_text(3)});
  }
  Statement properties(database_, "SELECT name, host, present FROM property");
  while (properties.step()) {
    state.properties.push_back({properties.text(0), properties.text(1), properties.integer(2) != 0});
  }
  Statement shrunk(database_, "SELECT host FROM shrunk");
  while (shrunk.step()) state.shrunk.push_back(shrunk.text(0));
  Statement expiration(database_, "SELECT value, configured FROM expiration");
  if (expiration.step()) state.expiration = {expiration.real(0), expiration.real(1)};
  Statement inventory(database_, "SELECT method, text, replaced FROM inventory");
  if (inventory.step()) {
    const std::string method = inventory.text(0);
    const auto known = proto::parse_method_name(method);
    if (!known) {
      throw Error(EBADMSG, fmt::format("{}: table inventory: unknown method {}", database_.path(), method));
    }
    state.inventory = {*known, std::make_shared<const ResourceSet>(ResourceSet::parse(inventory.text(1))),
                       inventory.optional_text(2)};
  }
  return state;
}

void StoreWriter::commit(const std::vector<Record>& records) {
  transaction([&] {
    for (const Record& record : records) write(record);
  });
}

template <class Work>
void StoreWriter::transaction(Work work) {
  database_.execute("BEGIN IMMEDIATE");
  try {
    work();
    database_.execute("COMMIT");
  } catch (...) {
    // A full disk may have rolled it back already; there is nothing more to undo then.
    try {
      database_.execute("ROLLBACK");
    } catch (const Error&) {
    }
    throw;
  }
}

std::size_t StoreWriter::trim(double before, std::size_t most) {
  trim_find_.bind(1, before).bind(2, static_cast<std::int64_t>(most));
  trim_find_.step();
  const std::int64_t last = trim_find_.integer(0);
  const double timestamp = trim_find_.real(1);
  const auto count = static_cast<std::size_t>(trim_find_.integer(2));
  trim_find_.reset();
  if (count == 0) return 0;
  transaction([&] {
    trim_events_.bind(1, last).run();
    trim_hosts_.bind(1, last).run();
    put_trimmed_.bind(1, timestamp).run();
  });
  return count;
}

void StoreWriter::write(const Record& record) {
  const bool wide = record.hosts.size() > widest_indexed;
  insert_event_.bind(1, static_cast<std::int64_t>(record.sequence))
      .bind(2, record.timestamp)
      .bind(3, std::string_view(record.name))
      .bind(4, std::string_view(record.text))
      .bind(5, std::int64_t{wide})
      .run();
  if (!wide) write_hosts(record);
  write_drains(record);
  write_properties(record);
  record.shrunk.for_each([&](std::string_view host) { put_shrunk_.bind(1, host).run(); });
  if (record.inventory) {
    put_inventory_.bind(1, proto::method_name(record.inventory->method))
        .bind(2, std::string_view(record.inventory->text))
        .bind(3, record.inventory->replaced)
        .run();
  }
  if (record.expiration) {
    put_expiration_.bind(1, record.expiration->value).bind(2, record.expiration->configured).run();
  }
}

void StoreWriter::write_hosts(const Record& record) {
  record.hosts.for_each([&](std::string_view host) {
    insert_host_.bind(1, static_cast<std::int64_t>(record.sequence)).bind(2, host).run();
  });
}

void StoreWriter::write_drains(const Record& record) {
  if (record.forget_drains) forget_drains_.run();
  record.undrained.for_each([&](IdSet::Id rank) { take_drain_.bind(1, std::int64_t{rank}).run(); });
  for (const auto& [group, hosts] : record.drained) {
    std::vector<IdSet::Id> ranks;
    ranks.reserve(group.ranks.count());
    group.ranks.for_each([&](IdSet::Id rank) { ranks.push_back(rank); });
    std::size_t position = 0;
    hosts.for_each([&, &drain = group](std::string_view host) {
      put_drain_.bind(1, std::int64_t{ranks[position++]})
          .bind(2, host)
          .bind(3, drain.timestamp)
          .bind(4, drain.reason)
          .run();
    });
  }
}

void StoreWriter::write_properties(const Record& record) {
  using Difference = PropertyState::Difference;
  if (record.forget_properties) forget_properties_.run();
  for (const auto& [state, hosts] : record.properties) {
    hosts.for_each([&, &property = state](std::string_view host) {
      if (property.difference == Difference::same) {
        take_property_.bind(1, std::string_view(property.name)).bind(2, host).run();
      } else {
        put_property_.bind(1, std::string_view(property.name))
            .bind(2, host)
            .bind(3, std::int64_t{property.difference == Difference::added})
            .run();
      }
    });
  }
}

}  // namespace resourced::daemon
