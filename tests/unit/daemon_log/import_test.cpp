// Importing an event log into a store: logs that do not determine the present state are refused, with the
// line.
#include "daemon/log/import.hpp"

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/constraint/query.hpp"
#include "core/error.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "imported_present.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

TEST_CASE("an event log of Flux becomes a store") {
  const resourced::test::TempDir dir;
  const auto import = [&](const std::string& log) {
    std::istringstream input(log);
    return import_events(input, "log", dir.path(), {});
  };
  const std::string log =
      R"({"timestamp":1,"name":"restart","context":{"ranks":"0-3","online":"","nodelist":"n[0-3]"}}
{"timestamp":2,"name":"resource-define","context":{"method":"configuration"}}
{"timestamp":3,"name":"drain","context":{"idset":"1-2","nodelist":"n[1-2]","reason":"dimm","overwrite":0}}
{"timestamp":4,"name":"drain","context":{"idset":"3","overwrite":0}}
{"timestamp":5,"name":"undrain","context":{"idset":"1","nodelist":"n1"}}
{"timestamp":6,"name":"something-else","context":{"x":1}}
{"timestamp":7,"name":"drain","context":{"idset":"2","nodelist":"n2","reason":"new","overwrite":1}}
{"timestamp":8,"name":"drain","context":{"idset":"2","nodelist":"n2","reason":"newer"}}
)";
  const Imported imported = import(log);
  CHECK(imported.events == 8);
  CHECK(imported.drained == 2);
  {
    StoreWriter writer(store_path(dir.path()));
    std::map<std::string, std::pair<double, std::string>> drains;
    for (const module::RecordedDrain& drain : state_of(writer).absent.drains) {
      drains[drain.target.host] = {to_number(drain.timestamp), drain.reason.value_or("-")};
    }
    CHECK(drains ==
          std::map<std::string, std::pair<double, std::string>>{{"n2", {3, "newer"}}, {"n3", {4, "-"}}});
  }
  CHECK_THROWS_WITH_AS(import(log), doctest::Contains("holds events already"), Error);
}

TEST_CASE("an evict of an imported log changes no state, and stays this project's own") {
  const resourced::test::TempDir dir;
  std::istringstream input(
      R"({"timestamp":1,"name":"restart","context":{"ranks":"0-1","online":"","nodelist":"n[0-1]"}}
{"timestamp":2,"name":"drain","context":{"idset":"1","nodelist":"n1","reason":"dimm","overwrite":0}}
{"timestamp":3,"name":"evict","context":{"idset":"0-1","nodelist":"n[0-1]","partition":"","since":2.5}}
)");
  const Imported imported = import_events(input, "log", dir.path(), {});
  CHECK(imported.events == 3);
  CHECK(imported.drained == 1);
  StoreWriter writer(store_path(dir.path()));
  StoreReader reader(writer.database(), writer.hosts());
  EventFilter filter;
  CHECK(reader.page(filter, 1, 3, 100).events.size() == 2);
  filter.audiences.own = true;
  filter.targets = targets_of("n0");
  const HistoryPage page = reader.page(filter, 1, 3, 100);
  REQUIRE(page.events.size() == 2);
  CHECK(page.events[1].audience == Audience::own);
}

TEST_CASE("a log that is wrong is refused with its line, and the store stays empty") {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"{", "log:2: not JSON"},
      {"[]", "log:2: must be an object"},
      {R"({"name":"drain"})", "log:2: timestamp: must be a number"},
      {R"({"timestamp":0,"name":"drain"})", "log:2: timestamp: must be greater than 0"},
      {R"({"timestamp":1})", "log:2: name: must be a string"},
      {R"({"timestamp":1,"name":"drain","context":{"idset":"2-1","nodelist":"n1"}})",
       "log:2: context.idset: "},
      {R"({"timestamp":1,"name":"drain","context":{"idset":"1-2","nodelist":"n1"}})",
       "log:2: context.nodelist: has 1 hosts for 2 ranks"},
      {R"({"timestamp":1,"name":"drain","context":{"idset":"1"}})", "log:2: context.nodelist: is missing"},
      {R"({"timestamp":1,"name":"drain","context":{"idset":"1","nodelist":"n1","overwrite":3}})",
       "log:2: context.overwrite: 3 is not"},
      {R"({"timestamp":5,"name":"truncate"})", "log:2: truncate: the log is incomplete"},
      {R"({"timestamp":1,"name":"resource-update","context":{"property-add":{"p":"0"}}})",
       "log:2: context.property-add: neither a restart event nor a configured inventory tells the host of "
       "rank 0"},
      {R"({"timestamp":1,"name":"resource-update","context":{"property-add":{"a b":"0"}}})",
       "log:2: context.property-add: "},
      {R"({"timestamp":1,"name":"resource-update","context":{"property-remove":{"":"0"}}})",
       "log:2: context.property-remove: "},
      {R"({"timestamp":1,"name":"resource-update","context":{"shrink":"0"}})",
       "log:2: context.nodelist: is missing"},
      {R"({"timestamp":1,"name":"resource-update","context":{"shrink":"0","nodelist":"n[0-1]"}})",
       "log:2: context.nodelist: has 2 hosts for 1 ranks"},
      {R"({"timestamp":1,"name":"shrink","context":{"idset":"0"}})", "log:2: context.nodelist: is missing"},
      {R"({"timestamp":1,"name":"shrink","context":{"nodelist":"n0"}})", "log:2: context.idset: is missing"},
      {R"({"timestamp":1,"name":"property-update","context":{"property-add":{"p":"0"},"nodelist":"n[0-1]"}})",
       "log:2: context.nodelist: has 2 hosts for 1 ranks"},
      {R"({"timestamp":1,"name":"property-update","context":{"property-add":{"p":"0"}}})",
       "log:2: context.property-add: neither a restart event nor a configured inventory tells the host of "
       "rank 0"},
      {R"({"timestamp":1,"name":"resource-update","context":{"expiration":-1}})",
       "log:2: context.expiration: -1 is not a time"},
      {R"({"timestamp":1,"name":"drain","context":7})", "log:2: context: must be an object"},
      {R"({"timestamp":1,"name":"resource-update","context":{"expiration":5,"nodelist":"n[1"}})",
       "log:2: context.nodelist: "},
      {R"({"timestamp":1,"name":"resource-update","context":{"expiration":5,"nodelist":7}})",
       "log:2: context.nodelist: must be a string"},
      {R"({"timestamp":1,"name":"offline","context":{"idset":"0","nodelist":"n[1"}})",
       "log:2: context.nodelist: "},
      {R"({"timestamp":1,"name":"drain","context":{"idset":"1-2","nodelist":"h,h"}})",
       "log:2: context.nodelist: no restart event tells which of the targets of \"h\" is rank 1"},
  };
  for (const auto& [line, expected] : bad) {
    CAPTURE(line);
    const resourced::test::TempDir dir;
    std::istringstream input("{\"timestamp\":1,\"name\":\"x\"}\n" + line + "\n");
    CHECK_THROWS_WITH_AS(import_events(input, "log", dir.path(), {}), doctest::Contains(expected.c_str()),
                         Error);
    CHECK(StoreWriter(store_path(dir.path())).last_sequence() == 0);
  }
}

/// The configured inventory: n0 to n3 with two cores each.
ImportOptions configured() {
  ImportOptions options;
  options.inventory = std::make_shared<const ResourceSet>(
      ResourceSet({{IdSet::parse("0-3"), IdSet{0, 1}, {}}}, Hostlist::parse("n[0-3]")));
  return options;
}

TEST_CASE("a line that no reader of event logs takes as an event is refused with its line") {
  const std::vector<std::pair<std::string, std::string>> bad{
      {R"({"timestamp":1,"name":"unknown","context":[1]})", "log:2: context: must be an object"},
      {R"({"timestamp":1,"name":"unknown","context":5})", "log:2: context: must be an object"},
      {R"({"timestamp":1,"name":"unknown","context":null})", "log:2: context: must be an object"},
      {R"({"timestamp":-1,"name":"unknown"})", "log:2: timestamp: must be greater than 0"},
      {R"({"timestamp":1,"name":"resource-define","context":{"method":"foo"}})",
       "log:2: context.method: \"foo\" is no method of RFC 44"},
      {R"({"timestamp":1,"name":"resource-define","context":{"method":5}})",
       "log:2: context.method: must be a string"},
      {R"({"timestamp":1,"name":"resource-define","context":{}})", "log:2: context.method: is missing"},
      {R"({"timestamp":1,"name":"resource-define"})", "log:2: context.method: is missing"},
      {R"({"timestamp":1,"name":"resource-define","context":[]})", "log:2: context: must be an object"},
  };
  for (const auto& row : bad) {
    CAPTURE(row.first);
    CHECK_THROWS_WITH_AS(Present("{\"timestamp\":1,\"name\":\"x\"}\n" + row.first + "\n"), row.second.c_str(),
                         Error);
  }
}

TEST_CASE("RFC 44: a definition of an imported log is sent with R, that of the configuration") {
  const Present store(restart, configured());
  const auto events = store.events();
  REQUIRE(events.size() == 2);
  CHECK(events[1].defines);
  REQUIRE(events[1].resources);
  CHECK(*events[1].resources == configured().inventory->encode());
}

TEST_CASE("RFC 44: a definition of an imported log is not sent without an inventory, which has its R") {
  const Present store(restart);
  CHECK(store.imported.events == 2);
  const auto events = store.events();
  REQUIRE(events.size() == 1);
  CHECK_FALSE(events[0].defines);
}

TEST_CASE("a log of Flux that names ranks alone means the configured hosts of these ranks, and says so") {
  const std::string drain = R"({"timestamp":2,"name":"drain","context":{"idset":"1,3","reason":"x"}})"
                            "\n";
  const std::string undrain = R"({"timestamp":3,"name":"undrain","context":{"idset":"3"}})"
                              "\n";
  const Present store(drain + undrain, configured());
  CHECK(store.drained() == Names{"n1"});
  CHECK(store.imported.assumed == IdSet::parse("1,3"));
  CHECK(store.events_of("n3") == std::vector<Sequence>{1, 2});

  // A restart with hosts is better.
  const Present renamed(
      R"({"timestamp":1,"name":"restart","context":{"ranks":"0-3","online":"","nodelist":"n[3,2,1,0]"}})"
      "\n" +
          drain,
      configured());
  CHECK(renamed.drained() == Names{"n0", "n2"});
  CHECK(renamed.imported.assumed.empty());

  const Present property(update(R"({"property-add":{"p":"2"}})"), configured());
  CHECK(property.properties() == Names{"+p@n2"});
  CHECK(property.imported.assumed == IdSet{2});
}

TEST_CASE("a rank that neither the log nor the configuration knows is refused with its line") {
  const std::string beyond = R"({"timestamp":1,"name":"drain","context":{"idset":"3-5"}})";
  CHECK_THROWS_WITH_AS(
      Present(beyond, configured()),
      "log:1: context.nodelist: is missing: neither a restart event nor a configured inventory "
      "tells the host of rank 4",
      Error);
}

TEST_CASE("RFC 44: overwrite says what a recorded drain changes of targets that are drained already") {
  struct Row {
    int overwrite;
    double timestamp;
    const char* reason;
  };
  for (const Row& row : {Row{0, 2, "first"}, Row{1, 2, "second"}, Row{2, 3, "second"}}) {
    CAPTURE(row.overwrite);
    const auto drain = [](int timestamp, const char* reason, int overwrite) {
      return fmt::format(
          R"({{"timestamp":{},"name":"drain","context":{{"idset":"1","nodelist":"n1","reason":"{}","overwrite":{}}}}})"
          "\n",
          timestamp, reason, overwrite);
    };
    const Present store(restart + drain(2, "first", 0) + drain(3, "second", row.overwrite));
    REQUIRE(store.state.absent.drains.size() == 1);
    CHECK(store.state.absent.drains[0].timestamp == wall_time(row.timestamp));
    CHECK(store.state.absent.drains[0].reason == row.reason);
  }
}

TEST_CASE("a log that the configured inventory could not take up is refused") {
  ResourceSet inventory({{IdSet::parse("0-2"), IdSet{0}, {}}}, Hostlist::parse("n[0-2]"));
  inventory.set_starttime(wall_time(1000));
  ImportOptions options;
  options.inventory = std::make_shared<const ResourceSet>(inventory);
  options.partitions = {{"a", IdSet{0}, {}}, {"b", std::nullopt, constraint::parse_query("p")}};
  const std::string drain =
      R"({"timestamp":2,"name":"drain","context":{"idset":"3","nodelist":"n3","overwrite":0}})"
      "\n";
  const std::vector<std::pair<std::string, std::string>> bad{
      {drain, "log: the log has a drain of n3, which is not in the configured inventory"},
      {update(R"({"property-add":{"q":"3"}})"),
       "log: the log changes the property q of n3, which is not in the configured inventory"},
      {update(R"({"expiration":900})"), "log: expiration 900 is not after starttime 1000"},
      {update(R"({"property-add":{"p":"0"}})"),
       "log: partitions a and b overlap: rank 0 (n0) would be in both, because of properties that were "
       "changed at "
       "run time"},
  };
  for (const auto& [log, why] : bad) {
    CAPTURE(log);
    CHECK_THROWS_WITH_AS(Present(restart + log, options), doctest::Contains(why.c_str()), Error);
  }
  CHECK(Present(restart + drain + update(R"({"shrink":"3","nodelist":"n3"})"), options).shrunk() ==
        Names{"n3"});
}

TEST_CASE("imported events are found by the hosts of their ranks") {
  const Present store(restart + update(R"({"property-add":{"p":"1"},"property-remove":{"q":"2"}})") +
                      update(R"({"shrink":"1","nodelist":"n1"})") + update(R"({"expiration":5000})") +
                      R"({"timestamp":3,"name":"offline","context":{"idset":"2-3"}})" + "\n" +
                      R"({"timestamp":4,"name":"drain","context":{"idset":"3","overwrite":0}})");
  CHECK(store.events_of("n0") == std::vector<Sequence>{1});
  CHECK(store.events_of("n1") == std::vector<Sequence>{1, 3, 4});
  CHECK(store.events_of("n2") == std::vector<Sequence>{1, 3, 6});
  CHECK(store.events_of("n3") == std::vector<Sequence>{1, 6, 7});
}

TEST_CASE("a line is taken only if the wire takes it as an event of a journal response") {
  const auto nested = [](int depth) {
    const auto count = static_cast<std::size_t>(depth - 1);
    return R"({"timestamp":1,"name":"x","y":)" + std::string(count, '[') + std::string(count, ']') + "}";
  };
  // A response is an object that holds an array of events, and may be 64 levels deep.
  CHECK(Present(nested(62)).imported.events == 1);
  ImportOptions options;
  options.max_line = 1000;
  std::string longest = R"({"timestamp":1,"name":"x","y":")";
  longest += std::string(options.max_line - longest.size() - 2, 'y') + "\"}";
  REQUIRE(longest.size() == options.max_line);
  CHECK(Present(longest, options).imported.events == 1);
  CHECK(Present(longest + "\n" + longest + "\n", options).imported.events == 2);

  const std::vector<std::pair<std::string, std::string>> bad{
      {nested(79), "log:2: nests deeper than 78"},
      {longest + " ", "log:2: longer than 1000 bytes"},
      {std::string(100000, 'x'), "log:2: longer than 1000 bytes"},
      {std::string("{\"timestamp\":1,\"name\":\"x\"}") + '\0' + "{}", "log:2: not JSON"},
  };
  for (const auto& [line, expected] : bad) {
    for (const char* end : {"", "\n", "\n{}\n"}) {
      CAPTURE(expected);
      CHECK_THROWS_WITH_AS(Present("{\"timestamp\":1,\"name\":\"x\"}\n" + line + end, options),
                           expected.c_str(), Error);
    }
  }
  CHECK_THROWS_WITH_AS(Present(nested(200000)), "log:1: nests deeper than 78", Error);
  CHECK_THROWS_WITH_AS(Present(std::string(1000000, '[')), "log:1: nests deeper than 78", Error);
}

}  // namespace
}  // namespace resourced::daemon::log
