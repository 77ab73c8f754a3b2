// Stores written by earlier versions: upgraded to the present schema with their complete state.
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/load_state.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_schema.hpp"
#include "daemon/log/store_writer.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {

using module::RecordedState;
using module::TargetName;

namespace {

TEST_CASE("a store of an older version is brought to the present one with all that it knows") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 1: two drains, a property and an expiration.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_1.sqlite", path);
  for (int opened = 0; opened < 2; ++opened) {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 3);
    CHECK(state.drains[0].target.host == "test2");
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(state.drains[2].target == TargetName{"test5", 0});
    CHECK_FALSE(state.drains[2].reason);
    REQUIRE(state.properties.size() == 1);
    CHECK(state.properties[0].target.host == "test1");
    REQUIRE(state.expiration);
    CHECK(state.expiration->value == wall_time(2000000000));
    // The time of its event, not of the last one.
    Statement event(writer.database(),
                    "SELECT timestamp FROM event WHERE text LIKE '%\"expiration\":2000000000%'");
    REQUIRE(event.step());
    CHECK(state.expiration->timestamp == wall_time(event.real(0)));
    CHECK(state.inventory.resources == nullptr);
  }
}

TEST_CASE("a store of version 2 keeps its log, whose events know their hosts, and what was drained") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 2: test[0-99] start, test[2-3] and test5 are drained, test3 is
  // undrained, test1 gets a property, test[10-89] are drained and undrained, an expiration, and test99
  // leaves.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_2.sqlite", path);
  for (int opened = 0; opened < 2; ++opened) {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 2);
    CHECK(state.drains[0].target.host == "test2");
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(state.drains[1].target.host == "test5");
    CHECK(state.properties.size() == 1);
    CHECK(state.shrunk.size() == 1);
    StoreReader reader(writer.database(), writer.hosts());
    CHECK(reader.page({}, 1, 10, 100).events.size() == 10);
    const auto sequences_of = [&](const std::string& host) {
      EventFilter filter;
      filter.targets = targets_of(host);
      std::vector<Sequence> sequences;
      for (const LoggedEvent& event : reader.page(filter, 1, 10, 100).events)
        sequences.push_back(event.sequence);
      return sequences;
    };
    CHECK(sequences_of("test3") == std::vector<Sequence>{1, 3, 5});
    CHECK(sequences_of("test50") == std::vector<Sequence>{1, 7, 8});
    CHECK(sequences_of("test99") == std::vector<Sequence>{1, 10});
    // Version 2 did not store its R.
    const auto define = reader.page({}, 2, 2, 1).events;
    REQUIRE(define.size() == 1);
    CHECK(define[0].defines);
    CHECK_FALSE(define[0].resources);
  }
}

TEST_CASE("a store of version 3 learns from its log when the expiration was set") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 3: test[0-9] start, test2 is drained, test3 has a property, an
  // expiration, test9 leaves, test4 is drained.
  const std::string vector = RESOURCED_VECTORS "/store/version_3.sqlite";
  SUBCASE("as it was written") {
    std::filesystem::copy_file(vector, path);
    for (int opened = 0; opened < 2; ++opened) {
      StoreWriter writer(path);
      const RecordedState state = writer.load();
      CHECK(state.drains.size() == 2);
      CHECK(state.properties.size() == 1);
      CHECK(state.shrunk == std::vector<TargetName>{{"test9", 0}});
      StoreReader reader(writer.database(), writer.hosts());
      const auto log = reader.page({}, 1, 7, 100).events;
      REQUIRE(log.size() == 7);
      REQUIRE(log[4].text.find("expiration") != std::string::npos);
      REQUIRE(state.expiration);
      CHECK(state.expiration->value == wall_time(4000000000));
      CHECK(log[4].text.find(fmt::format("\"timestamp\":{},", to_number(state.expiration->timestamp))) !=
            std::string::npos);
    }
  }
  SUBCASE("with a damaged row it is refused before anything is made of it") {
    std::string bytes = resourced::test::read_file(vector);
    // In the row of the drain; in the event a quote follows.
    std::size_t reason = bytes.find("bad dimm");
    while (reason != std::string::npos && bytes[reason + 8] == '"')
      reason = bytes.find("bad dimm", reason + 1);
    REQUIRE(reason != std::string::npos);
    bytes[reason] = 'B';
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK_THROWS_WITH_AS(StoreWriter{path}, doctest::Contains("do not match their checksum"), Error);
    CHECK((resourced::test::read_file(path) == bytes));
  }
}

TEST_CASE("a store of version 6 keeps its drains, which have no actors, and takes up those of later ones") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 6: test[0-9] start, test2 is drained, an expiration, test9 leaves, test4
  // is drained.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_6.sqlite", path);
  {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 2);
    for (const module::RecordedDrain& drain : state.drains) CHECK_FALSE(drain.by);
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(state.shrunk == std::vector<TargetName>{{"test9", 0}});
    Record record;
    record.sequence = 7;
    record.timestamp = wall_time(4000000000);
    record.name = "drain";
    record.text = "{}";
    record.changes.drained = {
        {{text::Hostlist::parse("test4"), {}}, wall_time(5), "fan", module::ByUser{1000}},
        {{text::Hostlist::parse("test5"), {}}, wall_time(6), "x", module::ByHost{"test5"}}};
    writer.commit({record});
  }
  const RecordedState state = StoreWriter(path).load();
  REQUIRE(state.drains.size() == 3);
  CHECK_FALSE(state.drains[0].by);
  CHECK(state.drains[1].by == module::Actor(module::ByUser{1000}));
  CHECK(state.drains[2].by == module::Actor(module::ByHost{"test5"}));
}

TEST_CASE("a store of version 7 keeps its drains, and takes up ends of drains and those that begin later") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 7, by root: as that of version 6.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_7.sqlite", path);
  {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 2);
    CHECK(state.drains[0].by == module::Actor(module::ByUser{0}));
    CHECK_FALSE(state.drains[0].until);
    CHECK(state.scheduled.empty());
    Record record;
    record.sequence = 7;
    record.timestamp = wall_time(4000000000);
    record.name = "drain-schedule";
    record.text = "{}";
    record.changes.drained = {{{text::Hostlist::parse("test4"), {}},
                               wall_time(5),
                               "fan",
                               module::ByUser{1000},
                               wall_time(4000000100)}};
    record.changes.scheduled = {
        {{text::Hostlist::parse("test[6-7]"), {}},
         wall_time(4000000050),
         std::nullopt,
         {},
         wall_time(4000000060)},
        {{text::Hostlist::parse("test8"), {}}, wall_time(4000000070), "x", module::ByKey{"ops"}}};
    writer.commit({record});
    Record other = record;
    other.sequence = 8;
    other.changes = {};
    other.changes.unscheduled = {text::Hostlist::parse("test6"), {}};
    writer.commit({other});
  }
  {
    StoreWriter writer(path);
    const RecordedState state = writer.load();
    REQUIRE(state.drains.size() == 2);
    CHECK_FALSE(state.drains[0].until);
    CHECK(state.drains[1].until == wall_time(4000000100));
    REQUIRE(state.scheduled.size() == 2);
    CHECK(state.scheduled[0].target.host == "test7");
    CHECK(state.scheduled[0].timestamp == wall_time(4000000050));
    CHECK_FALSE(state.scheduled[0].reason);
    CHECK(state.scheduled[0].until == wall_time(4000000060));
    CHECK(state.scheduled[1].by == module::Actor(module::ByKey{"ops"}));
    CHECK_FALSE(state.scheduled[1].until);
    Record record;
    record.sequence = 9;
    record.timestamp = wall_time(4000000000);
    record.name = "restart";
    record.text = "{}";
    record.changes.forget_scheduled = true;
    writer.commit({record});
  }
  CHECK(StoreWriter(path).load().scheduled.empty());
}

TEST_CASE("an actor that no daemon writes is a damaged row") {
  for (const char* actor : {"", "root", "{}", R"({"userid":-1})", R"({"userid":4294967296})", R"({"key":""})",
                            R"({"key":"a","host":"b"})", R"({"friend":"a"})"}) {
    CAPTURE(actor);
    Database database(":memory:");
    prepare_schema(database);
    Statement put(database, "INSERT INTO drain(host, ordinal, timestamp, actor) VALUES ('n7', 0, 1, ?)");
    put.bind(1, std::string_view(actor)).run();
    CHECK_THROWS_WITH_AS(static_cast<void>(load_state(database)), doctest::Contains("table drain: n7: "),
                         Error);
  }
}

std::string text_of(const TargetName& target) { return fmt::format("{}/{}", target.host, target.ordinal); }

TEST_CASE("an upgrade from version 2 finds the targets of hosts that stand for several ranks") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  // Written by the daemon of version 2 on n0,h,h,h,h,n1: `shrink 3`, `property add fast 4`, `property add big
  // 5`, `drain 2 bad dimm`, `drain n0 fan`, `shrink 5`. Its tables had h for ranks 2, 3 and 4 alike.
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_2_repeated_hosts.sqlite", path);
  for (int opened = 0; opened < 2; ++opened) {
    const RecordedState state = StoreWriter(path).load();
    REQUIRE(state.drains.size() == 2);
    CHECK(text_of(state.drains[0].target) == "h/1");
    CHECK(state.drains[0].reason == "bad dimm");
    CHECK(text_of(state.drains[1].target) == "n0/0");
    REQUIRE(state.properties.size() == 1);
    CHECK(text_of(state.properties[0].target) == "h/3");
    CHECK(state.properties[0].name == "fast");
    REQUIRE(state.shrunk.size() == 2);
    CHECK(text_of(state.shrunk[0]) == "h/2");
    CHECK(text_of(state.shrunk[1]) == "n1/0");
  }
}

TEST_CASE("an upgrade from version 2 takes run-time changes out of the stored inventory") {
  const resourced::test::TempDir dir;
  const std::string path = store_path(dir.path());
  std::filesystem::copy_file(RESOURCED_VECTORS "/store/version_2_repeated_hosts.sqlite", path);
  const auto stored = [](const char* properties, double expiration) {
    return fmt::format(R"({{"version":1,"execution":{{"R_lite":[{{"rank":"0-1","children":{{"core":"0"}}}}],)"
                       R"("nodelist":["a,b"],"properties":{},"starttime":0,"expiration":{}}}}})",
                       properties, expiration);
  };
  Database(path).execute(fmt::format("INSERT INTO inventory(id, text) VALUES (1, '{}');"
                                     "DELETE FROM property; DELETE FROM event;"
                                     "INSERT INTO property VALUES ('added', 'b', 1), ('gone', 'a', 0);"
                                     "INSERT INTO expiration VALUES (1, 5000, 700)",
                                     stored(R"({"added":"0-1"})", 5000))
                             .c_str());
  const RecordedState state = StoreWriter(path).load();
  REQUIRE(state.inventory.resources);
  CHECK(*state.inventory.resources == rset::ResourceSet::parse(stored(R"({"added":"0","gone":"0"})", 700)));
}

}  // namespace
}  // namespace resourced::daemon::log
