// The tables of the store: of a new one, and the files that are refused.
#include "daemon/log/store_schema.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "temp_dir.hpp"

namespace resourced::daemon::log {
namespace {

using resourced::test::TempDir;

constexpr std::int64_t present_version = 1;

std::int64_t number(Database& database, const char* query) {
  Statement statement(database, query);
  REQUIRE(statement.step());
  return statement.integer(0);
}

std::int64_t version_of(Database& database) { return number(database, "PRAGMA user_version"); }

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("an empty database gets the tables of the present version") {
  Database database(":memory:");
  check_schema(database);
  CHECK(is_empty(database));
  prepare_schema(database);
  check_schema(database);
  CHECK_FALSE(is_empty(database));
  CHECK(version_of(database) == present_version);
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

TEST_CASE("a store of another version is refused, with the way out") {
  const TempDir dir;
  const std::string path = dir.file("store");
  {
    Database database(path);
    prepare_schema(database);
  }
  const auto refusal = [&](std::int64_t application, std::int64_t version) {
    Database(path).execute(
        fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", application, version).c_str());
    const std::string before = content_of(path);
    std::string text;
    try {
      Database database(path);
      check_schema(database);
    } catch (const Error& error) {
      text = error.what();
    }
    CHECK(content_of(path) == before);
    return text;
  };
  constexpr std::int64_t application = 0x52535231;
  constexpr std::int64_t application_before = 0x52535243;
  CHECK(refusal(application, 1).empty());
  for (const std::int64_t version : {-1L, 0L, 2L, 2147483647L}) {
    CHECK(refusal(application, version) ==
          fmt::format("{}: schema version {} is not 1, which this resourced reads; start the version that "
                      "wrote it",
                      path, version));
  }
  for (const std::int64_t version : {1, 10}) {
    CHECK(refusal(application_before, version) ==
          fmt::format("{}: a store of a resourced before 0.1.0 (schema {}), which is not upgraded; move its "
                      "directory away to start with an empty store",
                      path, version));
  }
  CHECK(refusal(1, 1) ==
        fmt::format("{}: not a store of resourced; name another directory with --state", path));
}

TEST_CASE("tables that are not those of the version are refused") {
  // The check includes the statements: a missing column would otherwise be found only in use.
  for (const char* change : {"CREATE TABLE more (x)", "CREATE INDEX more ON event (timestamp)",
                             "ALTER TABLE event ADD COLUMN more"}) {
    CAPTURE(change);
    Database database(":memory:");
    prepare_schema(database);
    database.execute(change);
    CHECK_THROWS_WITH_AS(check_schema(database),
                         doctest::Contains("its tables are not those of its schema version"), Error);
  }
}

}  // namespace
}  // namespace resourced::daemon::log
