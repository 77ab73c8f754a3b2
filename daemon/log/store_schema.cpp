#include "daemon/log/store_schema.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/present_sum.hpp"

namespace resourced::daemon::log {
namespace {

// "RSRC" in ASCII: tells a store from any other SQLite file.
constexpr std::int64_t application_id = 0x52535243;
constexpr std::int64_t schema_version = 10;

constexpr const char* version_1 = R"sql(
  CREATE TABLE event (
    sequence INTEGER PRIMARY KEY,
    timestamp REAL NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    wide INTEGER NOT NULL
  );
  CREATE INDEX event_timestamp ON event (timestamp);
  CREATE INDEX event_wide ON event (sequence) WHERE wide = 1;
  CREATE TABLE event_host (
    sequence INTEGER NOT NULL,
    host TEXT NOT NULL,
    PRIMARY KEY (sequence, host)
  ) WITHOUT ROWID;
  CREATE INDEX event_host_host ON event_host (host, sequence);
  CREATE TABLE trimmed (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    timestamp REAL NOT NULL
  );
  CREATE TABLE drain (
    rank INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    timestamp REAL NOT NULL,
    reason TEXT
  );
  CREATE TABLE property (
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    present INTEGER NOT NULL,
    PRIMARY KEY (name, host)
  ) WITHOUT ROWID;
  CREATE TABLE shrunk (host TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE expiration (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    value REAL NOT NULL,
    configured REAL NOT NULL
  );
)sql";

// Adds the discovered inventory, which no configuration has.
constexpr const char* version_2 = R"sql(
  CREATE TABLE inventory (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    text TEXT NOT NULL
  );
)sql";

// State belongs to a target of a host, not to a host or a rank.
//
// Rows of the log have checksums, the tables of the present have one for all their rows. The hosts of an
// event are an idset of known_host.id; event_block has those of 256 events together, so that a search can
// skip them. A stored R has its method, and a loaded one also the configured R that it replaces. In earlier
// versions only discovery stored an R.
constexpr const char* version_3 = R"sql(
  ALTER TABLE inventory ADD COLUMN method TEXT NOT NULL DEFAULT 'dynamic-discovery';
  ALTER TABLE inventory ADD COLUMN replaced TEXT;
  ALTER TABLE event RENAME TO event_2;
  CREATE TABLE event (
    sequence INTEGER PRIMARY KEY,
    timestamp REAL NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    hosts TEXT NOT NULL,
    resources INTEGER,
    sum INTEGER NOT NULL
  );
  CREATE TABLE event_block (
    block INTEGER PRIMARY KEY,
    hosts TEXT NOT NULL,
    sum INTEGER NOT NULL
  );
  CREATE TABLE resource_set (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    last INTEGER NOT NULL
  );
  CREATE TABLE known_host (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL
  );
  ALTER TABLE trimmed RENAME TO trimmed_2;
  CREATE TABLE trimmed (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL,
    timestamp REAL NOT NULL
  );
  INSERT INTO trimmed SELECT 1, (SELECT min(sequence) FROM event_2) - 1, timestamp FROM trimmed_2;
  DROP TABLE trimmed_2;
  CREATE TABLE present (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    store INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    sum INTEGER NOT NULL
  );
  ALTER TABLE drain RENAME TO drain_2;
  CREATE TABLE drain (
    host TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    timestamp REAL NOT NULL,
    reason TEXT,
    PRIMARY KEY (host, ordinal)
  ) WITHOUT ROWID;
  INSERT INTO drain SELECT host, row_number() OVER (PARTITION BY host ORDER BY rank) - 1, timestamp, reason
    FROM drain_2;
  DROP TABLE drain_2;
  ALTER TABLE property RENAME TO property_2;
  CREATE TABLE property (
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    present INTEGER NOT NULL,
    PRIMARY KEY (name, host, ordinal)
  ) WITHOUT ROWID;
  INSERT INTO property SELECT name, host, 0, present FROM property_2;
  DROP TABLE property_2;
  ALTER TABLE shrunk RENAME TO shrunk_2;
  CREATE TABLE shrunk (
    host TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (host, ordinal)
  ) WITHOUT ROWID;
  INSERT INTO shrunk SELECT host, 0 FROM shrunk_2;
  DROP TABLE shrunk_2;
)sql";
constexpr const char* version_3_after_copy = R"sql(
  DROP TABLE event_host;
  DROP TABLE event_2;
)sql";

// Adds the time at which the expiration was set, to tell whether the enclosing instance has set another one
// later: the time of its event, or if that was dropped, of the last event.
constexpr const char* version_4 = R"sql(
  ALTER TABLE expiration ADD COLUMN timestamp REAL NOT NULL DEFAULT 0;
  UPDATE expiration SET timestamp = coalesce(
    (SELECT timestamp FROM event WHERE name = 'resource-update' AND text LIKE '%"expiration"%'
      ORDER BY sequence DESC LIMIT 1),
    (SELECT timestamp FROM event ORDER BY sequence DESC LIMIT 1),
    0);
)sql";

// Adds the brokers of a Flux instance, by whose order the ranks of the stored R count.
constexpr const char* version_5 = R"sql(
  CREATE TABLE broker (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    hosts TEXT NOT NULL
  );
)sql";

// Adds the allocations: those that are there now, and in the log the number of records of the ledger up to
// each event.
constexpr const char* version_6_of_event = R"sql(
  ALTER TABLE event ADD COLUMN ledger INTEGER NOT NULL DEFAULT 0;
)sql";
constexpr const char* version_6 = R"sql(
  CREATE TABLE allocation (
    id TEXT PRIMARY KEY,
    resources TEXT NOT NULL,
    ordinals TEXT,
    expiration REAL,
    note TEXT,
    part TEXT NOT NULL
  ) WITHOUT ROWID;
)sql";

// Adds the actor of each drain, as JSON (proto/actor_json.hpp); null for none, and for drains from before.
constexpr const char* version_7 = R"sql(
  ALTER TABLE drain ADD COLUMN actor TEXT;
)sql";

// Adds the end of each drain, and drains that begin later.
constexpr const char* version_8 = R"sql(
  ALTER TABLE drain ADD COLUMN until REAL;
  CREATE TABLE scheduled_drain (
    host TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    timestamp REAL NOT NULL,
    reason TEXT,
    actor TEXT,
    until REAL,
    PRIMARY KEY (host, ordinal)
  ) WITHOUT ROWID;
)sql";

// Adds snapshots of the states after some events. `resources` is the id of their inventory.
constexpr const char* version_9 = R"sql(
  CREATE TABLE snapshot (
    sequence INTEGER PRIMARY KEY,
    resources INTEGER NOT NULL,
    text TEXT NOT NULL,
    sum INTEGER NOT NULL
  );
)sql";

// Adds sums of the times of targets by state, for the part of the log that was dropped: a table of them for
// each month (proto/usage_json.hpp), and in the one row of rolled_up the last event that they have, and the
// times from which and up to which they count, in microseconds.
constexpr const char* version_10 = R"sql(
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
)sql";

// The first version with a checksum of the present. From it on tables have the same statements whether they
// were made or upgraded, so these are compared too.
constexpr std::int64_t first_with_sum = 3;

std::int64_t pragma(Database& database, const char* text) {
  Statement statement(database, text);
  const std::int64_t value = statement.step() ? statement.integer(0) : 0;
  statement.reset();
  return value;
}

void make_tables(Database& database, std::int64_t version) {
  database.execute(version_1);
  if (version > 1) database.execute(version_2);
  if (version > 2) database.execute(version_3);
  if (version > 2) database.execute(version_3_after_copy);
  if (version > 3) database.execute(version_4);
  if (version > 4) database.execute(version_5);
  if (version > 5) database.execute(version_6_of_event);
  if (version > 5) database.execute(version_6);
  if (version > 6) database.execute(version_7);
  if (version > 7) database.execute(version_8);
  if (version > 8) database.execute(version_9);
  if (version > 9) database.execute(version_10);
}

// The schema of a database as one text without blanks, which differ between versions of SQLite. Tables and
// indexes that SQLite made itself are left out.
std::string describe(Database& database, bool with_statements) {
  std::string text;
  Statement entries(database,
                    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                    "ORDER BY type, name");
  while (entries.step()) {
    text += fmt::format("{} {}\n", entries.text(0), entries.text(1));
    if (with_statements) text += entries.text(2);
  }
  std::erase_if(text, [](char byte) { return byte == ' ' || byte == '\n'; });
  return text;
}

void check_tables(Database& database, std::int64_t version) {
  Database made(":memory:");
  make_tables(made, version);
  const bool exact = version >= first_with_sum;
  if (describe(database, exact) != describe(made, exact))
    throw damaged_store(database.path(), "its tables are not those of its schema version");
}

}  // namespace

std::int64_t present_schema() noexcept { return schema_version; }

bool is_empty(Database& database) { return pragma(database, "SELECT count(*) FROM sqlite_schema") == 0; }

void check_schema(Database& database) {
  if (is_empty(database)) return;
  if (pragma(database, "PRAGMA application_id") != application_id) {
    throw Error(EINVAL, fmt::format("{}: not a store of resourced; name another directory with --state",
                                    database.path()));
  }
  const std::int64_t version = pragma(database, "PRAGMA user_version");
  if (version < 1 || version > schema_version) {
    throw Error(EINVAL, fmt::format("{}: schema version {} is not from 1 to {}, which this resourced reads; "
                                    "start the version that wrote it",
                                    database.path(), version, schema_version));
  }
  check_tables(database, version);
  if (version == schema_version) return;
  // Check the whole file once, as the upgrade is about to copy it.
  Statement check(database, "PRAGMA integrity_check(1)");
  if (check.step() && check.text(0) != "ok") throw damaged_store(database.path(), check.text(0));
}

bool has_present_schema(Database& database) {
  return !is_empty(database) && pragma(database, "PRAGMA user_version") == schema_version;
}

bool has_present_sum(Database& database) {
  return !is_empty(database) && pragma(database, "PRAGMA user_version") >= first_with_sum;
}

namespace {

void lead_to_version_3(Database& database, std::int64_t version) {
  if (version < 1) database.execute(version_1);
  if (version < 2) database.execute(version_2);
  database.execute(version_3);
  // The log is written as it is now.
  database.execute(version_6_of_event);
  const Sequence last = upgrade_log(database);
  name_targets(database);
  database.execute(version_3_after_copy);
  PresentSum::begin(database, last);
}

}  // namespace

void prepare_schema(Database& database) {
  if (has_present_schema(database)) return;
  const std::int64_t version = is_empty(database) ? 0 : pragma(database, "PRAGMA user_version");
  database.execute("BEGIN IMMEDIATE");
  // A failure ends the connection, and with it the transaction.
  if (version < first_with_sum) {
    lead_to_version_3(database, version);
  } else if (version < 6) {
    database.execute(version_6_of_event);
  }
  if (version < 4) database.execute(version_4);
  if (version < 5) database.execute(version_5);
  if (version < 6) database.execute(version_6);
  if (version < 7) database.execute(version_7);
  if (version < 8) database.execute(version_8);
  if (version < 9) database.execute(version_9);
  database.execute(version_10);
  PresentSum::renew(database);
  database.execute(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", application_id, schema_version)
          .c_str());
  database.execute("COMMIT");
}

}  // namespace resourced::daemon::log
