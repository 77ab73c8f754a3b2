#include "daemon/store_schema.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::daemon {
namespace {

// "RSRC" in ASCII: tells a store from any other SQLite file.
constexpr std::int64_t application_id = 0x52535243;
constexpr std::int64_t schema_version = 3;

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

// An inventory that was discovered has no configuration to come from.
constexpr const char* version_2 = R"sql(
  CREATE TABLE inventory (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    text TEXT NOT NULL
  );
)sql";

// One version, not released yet: the R that only the store knows has its method, and for one that was loaded
// the configured R in the place of which it stands. Before, only discovery wrote one.
constexpr const char* version_3 = R"sql(
  ALTER TABLE inventory ADD COLUMN method TEXT NOT NULL DEFAULT 'dynamic-discovery';
  ALTER TABLE inventory ADD COLUMN replaced TEXT;
)sql";

std::int64_t pragma(Database& database, const char* text) {
  Statement statement(database, text);
  const std::int64_t value = statement.step() ? statement.integer(0) : 0;
  statement.reset();
  return value;
}

bool is_empty(Database& database) { return pragma(database, "SELECT count(*) FROM sqlite_schema") == 0; }

}  // namespace

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
}

void prepare_schema(Database& database) {
  const std::int64_t version = is_empty(database) ? 0 : pragma(database, "PRAGMA user_version");
  if (version == schema_version) return;
  database.execute("BEGIN IMMEDIATE");
  if (version < 1) database.execute(version_1);
  if (version < 2) database.execute(version_2);
  if (version < 3) database.execute(version_3);
  database.execute(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", application_id, schema_version)
          .c_str());
  database.execute("COMMIT");
}

}  // namespace resourced::daemon
