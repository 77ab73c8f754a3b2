#include "daemon/log/store_schema.hpp"

#include <cerrno>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/checksum.hpp"

namespace resourced::daemon::log {
namespace {

// "RSR1" in ASCII: tells a store of this program from any other SQLite file.
constexpr std::int64_t application_id = 0x52535231;
// "RSRC": the stores of programs before 0.1.0.
constexpr std::int64_t former_application_id = 0x52535243;
constexpr std::int64_t schema_version = 1;

// The tables of a store. Rows have checksums. `rest` is the part of an event that its text does not have
// (proto::encode_rest), null for an event of an imported log, from which no state follows. The hosts of an
// event are an idset of known_host.id; event_block has those of 256 events together, so that a search can
// skip them. `ledger` counts the records of the ledger up to an event. A snapshot is a State
// (proto::encode_state) after an event. A document is named by its digest, and needed up to the event `last`,
// or by a snapshot. `usage`, with a row for each month, and `rolled_up` have the times of targets by state,
// for events that were dropped (UsageSums).
constexpr const char* tables = R"sql(
  CREATE TABLE event (
    sequence INTEGER PRIMARY KEY,
    timestamp REAL NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    rest TEXT,
    hosts TEXT NOT NULL,
    resources TEXT,
    ledger INTEGER NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE event_block (
    block INTEGER PRIMARY KEY,
    hosts TEXT NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE known_host (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE document (
    name TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    last INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE snapshot (
    sequence INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE snapshot_document (
    snapshot INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (snapshot, document)
  ) WITHOUT ROWID;
  CREATE TABLE trimmed (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL,
    timestamp REAL NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE usage (
    month INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE rolled_up (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE store (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL,
    sum INTEGER NOT NULL
  );
)sql";

std::int64_t pragma(Database& database, const char* text) {
  Statement statement(database, text);
  const std::int64_t value = statement.step() ? statement.integer(0) : 0;
  statement.reset();
  return value;
}

// Describes the schema of a database as one text without blanks, which differ between versions of SQLite.
// Tables and indexes that SQLite made itself are left out.
std::string describe(Database& database) {
  std::string text;
  Statement entries(database,
                    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                    "ORDER BY type, name");
  while (entries.step()) text += fmt::format("{} {}\n{}", entries.text(0), entries.text(1), entries.text(2));
  std::erase_if(text, [](char byte) { return byte == ' ' || byte == '\n'; });
  return text;
}

std::int64_t number_sum(std::int64_t number) noexcept { return Checksum().add(number).value(); }

}  // namespace

std::int64_t present_schema() noexcept { return schema_version; }

bool is_empty(Database& database) { return pragma(database, "SELECT count(*) FROM sqlite_schema") == 0; }

void check_schema(Database& database) {
  if (is_empty(database)) return;
  const std::int64_t application = pragma(database, "PRAGMA application_id");
  if (application == former_application_id) {
    throw Error(EINVAL,
                fmt::format("{}: a store of a resourced before 0.1.0 (schema {}), which is not upgraded; "
                            "move its directory away to start with an empty store",
                            database.path(), pragma(database, "PRAGMA user_version")));
  }
  if (application != application_id) {
    throw Error(EINVAL, fmt::format("{}: not a store of resourced; name another directory with --state",
                                    database.path()));
  }
  const std::int64_t version = pragma(database, "PRAGMA user_version");
  if (version != schema_version) {
    throw Error(EINVAL, fmt::format("{}: schema version {} is not {}, which this resourced reads; start the "
                                    "version that wrote it",
                                    database.path(), version, schema_version));
  }
  Database made(":memory:");
  made.execute(tables);
  if (describe(database) != describe(made))
    throw damaged_store(database.path(), "its tables are not those of its schema version");
}

void prepare_schema(Database& database) {
  if (!is_empty(database)) return;
  // A failure ends the connection, and with it the transaction.
  database.execute("BEGIN IMMEDIATE");
  database.execute(tables);
  renew_number(database);
  database.execute(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", application_id, schema_version)
          .c_str());
  database.execute("COMMIT");
}

std::int64_t store_number(Database& database) {
  Statement store(database, "SELECT number, sum FROM store");
  if (!store.step() || number_sum(store.integer(0)) != store.integer(1))
    throw damaged_store(database.path(), "its number");
  const std::int64_t number = store.integer(0);
  store.reset();
  return number;
}

void renew_number(Database& database) {
  std::random_device random;
  const auto number = static_cast<std::int64_t>(std::uint64_t{random()} << 31U | random());
  Statement(database, "INSERT OR REPLACE INTO store(id, number, sum) VALUES (1, ?, ?)")
      .bind(1, number)
      .bind(2, number_sum(number))
      .run();
}

}  // namespace resourced::daemon::log
