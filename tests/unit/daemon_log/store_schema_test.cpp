// The tables of the store: of a new one, of upgrades from every recorded version, and the files that are
// refused. The rows that an upgrade converts: store_upgrade_test.cpp.
#include "daemon/log/store_schema.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/present_sum.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {
namespace {

using resourced::test::TempDir;

constexpr std::int64_t present_version = 10;

std::int64_t number(Database& database, const char* query) {
  Statement statement(database, query);
  REQUIRE(statement.step());
  return statement.integer(0);
}

std::int64_t version_of(Database& database) { return number(database, "PRAGMA user_version"); }

/// All tables, indexes and triggers with their statements, without blanks, which depend on the version of
/// SQLite.
std::string schema_of(Database& database) {
  Statement entries(database, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name");
  std::string text;
  while (entries.step()) text += fmt::format("{} {} {};", entries.text(0), entries.text(1), entries.text(2));
  std::erase_if(text, [](char byte) { return byte == ' ' || byte == '\n'; });
  return text;
}

std::string new_schema() {
  Database database(":memory:");
  prepare_schema(database);
  return schema_of(database);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A writable copy of a recorded store.
std::string copy_of(const std::string& recorded, const TempDir& dir) {
  std::filesystem::copy_file(fmt::format("{}/store/{}", RESOURCED_VECTORS, recorded), dir.file(recorded));
  return dir.file(recorded);
}

TEST_CASE("a transaction that is rolled back leaves the checksum of the present as it was") {
  Database database(":memory:");
  prepare_schema(database);
  PresentSum sum(database);
  sum.watch();
  const auto change = [&](const char* name) {
    database.execute(
        fmt::format("INSERT INTO property(name, host, ordinal, present) VALUES ('{}', 'n0', 0, 1)", name)
            .c_str());
  };
  database.execute("BEGIN IMMEDIATE");
  change("kept");
  sum.store(0);
  database.execute("COMMIT");
  sum.keep();

  // The COMMIT fails, after the sum was stored.
  database.execute("BEGIN IMMEDIATE");
  change("lost");
  sum.store(0);
  sum.revert();
  database.execute("ROLLBACK");

  database.execute("BEGIN IMMEDIATE");
  change("next");
  sum.store(0);
  database.execute("COMMIT");
  sum.keep();
  CHECK_NOTHROW(PresentSum(database).verify());
}

TEST_CASE("an empty database gets the tables of the present version") {
  Database database(":memory:");
  check_schema(database);
  CHECK(is_empty(database));
  CHECK_FALSE(has_present_schema(database));
  prepare_schema(database);
  check_schema(database);
  CHECK_FALSE(is_empty(database));
  CHECK(has_present_schema(database));
  CHECK(has_present_sum(database));
  CHECK(version_of(database) == present_version);
}

TEST_CASE("every recorded version is led to the tables of a new store") {
  const TempDir dir;
  struct Recorded {
    const char* file;
    std::int64_t version;
  };
  for (const auto& [file, version] :
       {Recorded{"version_1.sqlite", 1}, Recorded{"version_2.sqlite", 2},
        Recorded{"version_2_repeated_hosts.sqlite", 2}, Recorded{"version_3.sqlite", 3},
        Recorded{"version_4.sqlite", 4}, Recorded{"version_5.sqlite", 5}, Recorded{"version_6.sqlite", 6},
        Recorded{"version_7.sqlite", 7}, Recorded{"version_8.sqlite", 8}, Recorded{"version_9.sqlite", 9}}) {
    CAPTURE(file);
    const std::string path = copy_of(file, dir);
    {
      Database database(path);
      CHECK(version_of(database) == version);
      check_schema(database);
      CHECK_FALSE(has_present_schema(database));
      CHECK(has_present_sum(database) == (version >= 3));
      prepare_schema(database);
    }
    Database database(path);
    check_schema(database);
    CHECK(has_present_schema(database));
    CHECK(version_of(database) == present_version);
    CHECK(schema_of(database) == new_schema());
    CHECK(number(database, "SELECT count(*) FROM event") > 0);
  }
}

TEST_CASE("a store of the present version is left as it is") {
  const TempDir dir;
  const std::string path = dir.file("store");
  {
    Database database(path);
    prepare_schema(database);
  }
  const std::string before = content_of(path);
  {
    Database database(path);
    check_schema(database);
    prepare_schema(database);
  }
  CHECK(content_of(path) == before);
}

TEST_CASE("versions that no resourced up to this one wrote are refused, with the way out") {
  const TempDir dir;
  const std::string path = dir.file("store");
  {
    Database database(path);
    prepare_schema(database);
  }
  for (const std::int64_t version : {-1L, 0L, present_version + 1, 2147483647L}) {
    Database(path).execute(fmt::format("PRAGMA user_version={}", version).c_str());
    const std::string before = content_of(path);
    {
      Database database(path);
      const std::string text = fmt::format(
          "{}: schema version {} is not from 1 to {}, which this resourced reads; start the version that "
          "wrote it",
          path, version, present_version);
      CHECK_THROWS_WITH_AS(check_schema(database), text.c_str(), Error);
      CHECK_FALSE(has_present_schema(database));
    }
    CHECK(content_of(path) == before);
  }
}

TEST_CASE("a file of another application is refused, whatever its version") {
  Database database(":memory:");
  prepare_schema(database);
  database.execute("PRAGMA application_id=1");
  CHECK_THROWS_WITH_AS(check_schema(database),
                       ":memory:: not a store of resourced; name another directory with --state", Error);
}

TEST_CASE("tables that are not those of the version are refused, in every version") {
  const TempDir dir;
  for (const char* file : {"version_1.sqlite", "version_2.sqlite", "version_3.sqlite", "version_4.sqlite"}) {
    for (const char* change : {"CREATE TABLE more (x)", "CREATE INDEX more ON event (timestamp)"}) {
      CAPTURE(file);
      CAPTURE(change);
      const std::string path = copy_of(file, dir);
      {
        Database database(path);
        database.execute(change);
        CHECK_THROWS_WITH_AS(check_schema(database),
                             doctest::Contains("its tables are not those of its schema version"), Error);
      }
      std::filesystem::remove(path);
    }
  }
  // From version 3 on, the check includes the statements: a missing column would otherwise be found only in
  // use.
  Database database(":memory:");
  prepare_schema(database);
  database.execute("ALTER TABLE event ADD COLUMN more");
  CHECK_THROWS_WITH_AS(check_schema(database), doctest::Contains("its tables are not those"), Error);
}

TEST_CASE("an upgrade that fails leaves the version and the tables as they were") {
  const TempDir dir;
  const std::string path = copy_of("version_2.sqlite", dir);
  std::string before;
  {
    Database database(path);
    before = schema_of(database);
    // The table that the upgrade creates exists already, as if another program had changed the file after the
    // check.
    check_schema(database);
    database.execute("CREATE TABLE present (x)");
    CHECK_THROWS_AS(prepare_schema(database), Error);
  }
  Database database(path);
  database.execute("DROP TABLE present");
  CHECK(version_of(database) == 2);
  CHECK(schema_of(database) == before);
  check_schema(database);
}

}  // namespace
}  // namespace resourced::daemon::log
