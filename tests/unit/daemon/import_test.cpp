// Importing an event log into a store: the present state is that at the end of the log, and logs that do not
// determine it are refused.
#include "daemon/store/import.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/constraint/query.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/tables.hpp"
#include "core/error.hpp"
#include "daemon/store/store.hpp"
#include "daemon/store/store_reader.hpp"
#include "daemon/store/store_writer.hpp"
#include "proto/event_json.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::store {

using module::PropertyCommand;
using module::RecordedDrain;
using module::RecordedState;
using module::TargetName;
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
{"timestamp":7,"name":"drain","context":{"idset":"2","nodelist":"n2","reason":"newer","overwrite":1}}
)";
  const Imported imported = import(log);
  CHECK(imported.events == 7);
  CHECK(imported.drained == 2);
  {
    StoreWriter writer(store_path(dir.path()));
    std::map<std::string, std::pair<double, std::string>> drains;
    for (const RecordedDrain& drain : writer.load().drains) {
      drains[drain.target.host] = {to_number(drain.timestamp), drain.reason.value_or("-")};
    }
    CHECK(drains ==
          std::map<std::string, std::pair<double, std::string>>{{"n2", {3, "newer"}}, {"n3", {4, "-"}}});
  }
  CHECK_THROWS_WITH_AS(import(log), doctest::Contains("holds events already"), Error);
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
       "log:2: context.property-add: no restart event tells the hosts of the ranks"},
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
       "log:2: context.property-add: no restart event tells the hosts of the ranks"},
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

constexpr const char* restart =
    R"({"timestamp":1,"name":"restart","context":{"ranks":"0-3","online":"0-3","nodelist":"n[0-3]"}})"
    "\n"
    R"({"timestamp":1,"name":"resource-define","context":{"method":"configuration"}})"
    "\n";

std::string update(const std::string& context) {
  return fmt::format("{{\"timestamp\":2,\"name\":\"resource-update\",\"context\":{}}}\n", context);
}

// `host`, or `host/2` for the third target of it.
std::string text_of(const TargetName& target) {
  return target.ordinal == 0 ? target.host : fmt::format("{}/{}", target.host, target.ordinal);
}

/// A store imported from a log, and the state that a start would load from it.
struct Present {
  explicit Present(const std::string& log, const ImportOptions& options = {}) {
    std::istringstream input(log);
    imported = import_events(input, "log", dir.path(), options);
    StoreWriter writer(store_path(dir.path()));
    state = writer.load();
  }

  [[nodiscard]] std::set<std::string> properties() const {
    std::set<std::string> result;
    for (const module::RecordedProperty& property : state.properties) {
      result.insert(
          fmt::format("{}{}@{}", property.present ? "+" : "-", property.name, text_of(property.target)));
    }
    return result;
  }
  [[nodiscard]] std::set<std::string> drained() const {
    std::set<std::string> result;
    for (const RecordedDrain& drain : state.drains) result.insert(text_of(drain.target));
    return result;
  }
  [[nodiscard]] std::set<std::string> shrunk() const {
    std::set<std::string> result;
    for (const TargetName& target : state.shrunk) result.insert(text_of(target));
    return result;
  }

  /// The sequences of the events of a host.
  [[nodiscard]] std::vector<Sequence> events_of(const std::string& host) const {
    StoreWriter writer(store_path(dir.path()));
    StoreReader reader(writer.database(), writer.hosts());
    EventFilter filter;
    filter.targets = targets_of(host);
    std::vector<Sequence> result;
    for (const LoggedEvent& event : reader.page(filter, 1, imported.events, 1000).events) {
      result.push_back(event.sequence);
    }
    return result;
  }

  resourced::test::TempDir dir;
  Imported imported;
  RecordedState state;
};

using Names = std::set<std::string>;
using Sequences = std::vector<Sequence>;

TEST_CASE("properties stand after an import as the log leaves them") {
  const std::string define = R"({"timestamp":2,"name":"resource-define","context":{"method":"reload"}})"
                             "\n";
  const auto add = [](const char* ranks) {
    return update(fmt::format(R"({{"property-add":{{"p":"{}"}}}})", ranks));
  };
  const auto remove = [](const char* ranks) {
    return update(fmt::format(R"({{"property-remove":{{"p":"{}"}}}})", ranks));
  };
  const std::vector<std::pair<std::string, Names>> rows{
      {add("1-2"), {"+p@n1", "+p@n2"}},
      {remove("3"), {"-p@n3"}},
      // The names of the hosts decide, wherever their ranks are now.
      {R"({"timestamp":2,"name":"property-update","context":{"property-add":{"p":"2"},"property-remove":{"q":"1"},)"
       R"("nodelist":"n[8-9]"}})"
       "\n",
       {"+p@n9", "-q@n8"}},
      // An added property was not configured, and a removed one was, so reversing the change leaves no
      // difference.
      {add("1-2") + remove("2"), {"+p@n1"}},
      {remove("1-2") + add("1"), {"-p@n2"}},
      {add("1") + remove("1") + add("1"), {"+p@n1"}},
      {update(R"({"property-add":{"p":"0","q":"0"},"property-remove":{"r":"0-1"}})"),
       {"+p@n0", "+q@n0", "-r@n0", "-r@n1"}},
      // A definition may have changed the configuration, so the last change is kept.
      {add("1") + define + remove("1"), {"-p@n1"}},
      {remove("1") + define + add("1"), {"+p@n1"}},
      {add("1") + define, {"+p@n1"}},
      {add("1") + define + remove("1") + add("1"), {"+p@n1"}},
      {add("1") + define + add("2") + remove("2"), {"+p@n1"}},
  };
  for (const auto& [log, expected] : rows) {
    CAPTURE(log);
    CHECK(Present(restart + log).properties() == expected);
  }
}

TEST_CASE("hosts that left for good stay away after an import, and their drains are gone") {
  const std::string drain =
      R"({"timestamp":2,"name":"drain","context":{"idset":"1-3","nodelist":"n[1-3]","overwrite":0}})"
      "\n";
  for (const char* context : {R"({"shrink":"1-2","nodelist":"n[1-2]"})", R"({"shrink":"1-2"})"}) {
    CAPTURE(context);
    const Present store(restart + drain + update(context));
    CHECK(store.shrunk() == Names{"n1", "n2"});
    CHECK(store.drained() == Names{"n3"});
    CHECK(store.imported.drained == 1);
  }
}

TEST_CASE("targets of a host that stands for several ranks are imported each by itself") {
  const auto start = [](const char* ranks, const char* hosts) {
    return fmt::format(
        R"({{"timestamp":1,"name":"restart","context":{{"ranks":"{}","online":"","nodelist":"{}"}}}})"
        "\n",
        ranks, hosts);
  };
  const auto drain = [](const char* rank) {
    return fmt::format(
        R"({{"timestamp":2,"name":"drain","context":{{"idset":"{}","nodelist":"h","overwrite":0}}}})"
        "\n",
        rank);
  };
  const std::string changes =
      drain("1") + update(R"({"shrink":"2","nodelist":"h"})") + update(R"({"property-add":{"p":"3"}})");
  const Present store(start("0-3", "h,h,h,h") + changes);
  CHECK(store.drained() == Names{"h/1"});
  CHECK(store.shrunk() == Names{"h/2"});
  CHECK(store.properties() == Names{"+p@h/3"});
  // After a restart the ranks differ; the target that left keeps its ordinal among those of the host.
  const Present later(start("0-3", "h,h,h,h") + changes + start("1-2,4", "h,h,h") + drain("4") + drain("1"));
  CHECK(later.drained() == Names{"h", "h/1", "h/3"});
  CHECK(later.properties() == Names{"+p@h/3"});
  CHECK_THROWS_WITH_AS(Present(start("0-3", "k,h,h,h") + drain("0")),
                       doctest::Contains("no restart event tells which of the targets of \"h\" is rank 0"),
                       Error);
}

TEST_CASE("a host that left and was loaded again is imported as one that is there") {
  const auto start = [](const char* ranks, const char* hosts) {
    return fmt::format(
        R"({{"timestamp":1,"name":"restart","context":{{"ranks":"{}","online":"","nodelist":"{}"}}}})"
        "\n",
        ranks, hosts);
  };
  const auto drain = [](const char* rank, const char* host) {
    return fmt::format(
        R"({{"timestamp":3,"name":"drain","context":{{"idset":"{}","nodelist":"{}","overwrite":0}}}})"
        "\n",
        rank, host);
  };
  const std::string load = R"({"timestamp":2,"name":"resource-define","context":{"method":"reload"}})"
                           "\n";
  ImportOptions options;
  options.inventory = std::make_shared<const ResourceSet>(
      ResourceSet({{IdSet::parse("0-1"), IdSet{0}, {}}}, Hostlist::parse("n[0-1]")));
  const std::string shrunk = start("0-1", "n[0-1]") + update(R"({"shrink":"1","nodelist":"n1"})");
  const Present store(shrunk + load + start("0-1", "n[0-1]") + drain("1", "n1"), options);
  CHECK(store.shrunk() == Names{});
  CHECK(store.drained() == Names{"n1"});
  // Also after starts without it, and it may leave again.
  const std::string back = shrunk + start("0", "n0") + load + start("0-1", "n[1,0]");
  CHECK(Present(back + drain("0", "n1"), options).drained() == Names{"n1"});
  const Present again(back + drain("0", "n1") + update(R"({"shrink":"0","nodelist":"n1"})"), options);
  CHECK(again.shrunk() == Names{"n1"});
  CHECK(again.drained() == Names{});

  // For a host with several targets, only a count above the remaining ones shows that all returned.
  const std::string several = start("0-2", "h,h,h") + update(R"({"shrink":"1","nodelist":"h"})");
  CHECK(Present(several + start("0-1", "h,h")).shrunk() == Names{"h/1"});
  const Present all(several + start("0-1", "h,h") + load + start("0-2", "h,h,h") + drain("1", "h"));
  CHECK(all.shrunk() == Names{});
  CHECK(all.drained() == Names{"h/1"});
}

TEST_CASE(
    "a host that left is there again when an event after a load names it, also without a start between") {
  const auto event = [](const char* name, const std::string& context) {
    return fmt::format("{{\"timestamp\":3,\"name\":\"{}\",\"context\":{}}}\n", name, context);
  };
  const auto start = [&](const char* ranks, const char* hosts) {
    return event("restart", fmt::format(R"({{"ranks":"{}","online":"","nodelist":"{}"}})", ranks, hosts));
  };
  const auto on = [&](const char* name, const char* rank, const char* host) {
    return event(name, fmt::format(R"({{"idset":"{}","nodelist":"{}"}})", rank, host));
  };
  const std::string load = event("resource-define", R"({"method":"reload"})");
  const std::string two = start("0-1", "n[0-1]");
  const std::string left = on("shrink", "1", "n1");
  const std::string drained = on("drain", "1", "n1");

  const Present store(two + left + load + drained);
  CHECK(store.shrunk() == Names{});
  CHECK(store.drained() == Names{"n1"});
  CHECK(store.imported.drained == 1);
  // Ranks of the loaded R may be others.
  CHECK(Present(two + left + load + on("drain", "0", "n1")).drained() == Names{"n1"});
  CHECK(Present(two + left + load + on("drain", "7", "n1")).shrunk() == Names{});
  // It left in an earlier run of the daemon.
  const Present earlier(two + left + start("0", "n0") + load + drained + start("0-1", "n[0-1]"));
  CHECK(earlier.shrunk() == Names{});
  CHECK(earlier.drained() == Names{"n1"});
  // Undrained, but still present; and shrunk again.
  CHECK(Present(two + left + load + drained + on("undrain", "1", "n1")).shrunk() == Names{});
  CHECK(Present(two + left + load + drained + left).shrunk() == Names{"n1"});
  CHECK(Present(two + left + load + drained + left).drained() == Names{});
  // A definition without a load brings no target back, nor does an event of another host.
  const std::string configured = event("resource-define", R"({"method":"configuration"})");
  CHECK(Present(two + left + configured + on("drain", "0", "n0")).shrunk() == Names{"n1"});
  CHECK(Present(two + left + load + on("drain", "0", "n0")).shrunk() == Names{"n1"});

  // Earlier properties and expiration belonged to another R.
  const auto add = [&](const char* rank, const char* host) {
    return event("property-update",
                 fmt::format(R"({{"property-add":{{"p":"{}"}},"nodelist":"{}"}})", rank, host));
  };
  const std::string expires = update(R"({"expiration":5000})");
  const Present changed(two + add("0", "n0") + expires + left + load + add("1", "n1"));
  CHECK(changed.shrunk() == Names{});
  CHECK(changed.properties() == Names{"+p@n1"});
  CHECK_FALSE(changed.state.expiration);
  const Present kept(two + add("0", "n0") + left + load + add("0", "n0") + expires + drained);
  CHECK(kept.properties() == Names{"+p@n0"});
  CHECK(kept.state.expiration);

  // For a host with several targets, either all have returned, or the event is ambiguous.
  const std::string several = start("0-2", "h,h,h") + on("shrink", "1", "h");
  const Present all(several + load + on("drain", "1", "h"));
  CHECK(all.shrunk() == Names{});
  CHECK(all.drained() == Names{"h/1"});
  CHECK(Present(several + load + on("drain", "2", "h")).shrunk() == Names{"h/1"});
  CHECK_THROWS_WITH_AS(Present(several + start("0-1", "h,h") + load + on("drain", "2", "h")),
                       doctest::Contains("no restart event tells which of the targets of \"h\" is rank 2"),
                       Error);
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

TEST_CASE("an expiration is imported against the configured one") {
  const Present store(restart + update(R"({"expiration":5000})") + update(R"({"expiration":6000})"),
                      {.configured_expiration = wall_time(700)});
  REQUIRE(store.state.expiration);
  CHECK(store.state.expiration->value == wall_time(6000));
  CHECK(store.state.expiration->configured == wall_time(700));
  CHECK_FALSE(Present(restart).state.expiration);
}

TEST_CASE("ranks of an imported log are those of the last restart before") {
  const std::string renumbered =
      R"({"timestamp":3,"name":"restart","context":{"ranks":"0-2","online":"","nodelist":"n[3,2,1]"}})"
      "\n";
  const std::string drain = R"({"timestamp":2,"name":"drain","context":{"idset":"0-1","overwrite":0}})"
                            "\n";
  const std::string add = update(R"({"property-add":{"p":"0-1"}})");
  CHECK(Present(restart + renumbered + drain + add).properties() == Names{"+p@n2", "+p@n3"});
  // A host that was missing at a start has lost its recorded state.
  const Present store(restart + drain + add + renumbered + update(R"({"shrink":"0"})"));
  CHECK(store.properties() == Names{"+p@n1"});
  CHECK(store.drained() == Names{"n1"});
  CHECK(store.shrunk() == Names{"n3"});
}

/// An instance with random commands and restarts, each of which renumbers the hosts or omits some.
class RandomInstance {
 public:
  explicit RandomInstance(unsigned seed) : random_(seed) { restart(); }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      try {
        step();
      } catch (const Error&) {
        // Refused: no event.
      }
    }
  }

  [[nodiscard]] const std::string& log() const { return log_; }
  [[nodiscard]] RecordedState recorded() const { return tables_.state(); }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  void restart() {
    // All targets of a host are present or none, so that the ones that left are known.
    std::vector<std::string> hosts;
    for (const auto& [host, count] :
         std::map<std::string, std::size_t>{{"a", 3}, {"b", 2}, {"c", 1}, {"d", 1}})
      if (below(4) != 0) hosts.insert(hosts.end(), count, host);
    if (hosts.empty()) hosts.emplace_back("c");
    std::ranges::shuffle(hosts, random_);
    const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(hosts.size() - 1));
    Hostlist nodelist;
    for (const std::string& host : hosts) nodelist.append(host);
    module::StartCommand start;
    start.inventory = std::make_shared<const ResourceSet>(
        std::vector<rset::ResourceGroup>{{ranks, IdSet{0}, {}}}, std::move(nodelist));
    start.online = ranks;
    start.recorded = recorded();
    engine_ = engine::Engine(engine_.applied(), engine_.applied_at());
    take(engine::Start{std::move(start), {}});
  }

  void step() {
    if (below(8) == 0) return restart();
    IdSet some{below(7)};
    some.insert(below(7));
    const std::string targets = some.encode();
    const auto mode = static_cast<module::DrainMode>(below(4));
    const std::string name = below(2) == 0 ? "p" : "q";
    switch (below(9)) {
      case 0:
        return take(module::ShrinkCommand{IdSet{below(7)}.encode()});
      case 1:
        return take(module::ExpirationCommand{wall_time(5000 + below(3))});
      case 2:
        return take(PropertyCommand{PropertyCommand::Op::remove, name, targets});
      case 3:
      case 4:
        return take(PropertyCommand{PropertyCommand::Op::add, name, targets});
      case 5:
        return take(module::UndrainCommand{targets, std::nullopt, mode});
      case 6:
        return take(module::MonitorCommand{some, {}, {}, {}});
      default:
        return take(
            module::DrainCommand{targets, below(3) == 0 ? std::nullopt : std::optional("r" + name), mode});
    }
  }

  void take(const engine::Input& input) {
    for (const engine::Record& record : engine_.step(input, {wall_time(++now_), {}}).records) {
      log_ += proto::encode_event(record.event) + "\n";
      tables_.apply(record.changes);
    }
  }

  std::mt19937 random_;
  double now_ = 0;
  engine::Engine engine_;
  engine::Tables tables_;
  std::string log_;
};

TEST_CASE("an import of a daemon's log has the present of that daemon, however its ranks were numbered") {
  const auto text_of_state = [](const RecordedState& state) {
    std::set<std::string> lines;
    for (const RecordedDrain& drain : state.drains) {
      lines.insert(fmt::format("drain {} {} {}", text_of(drain.target), to_number(drain.timestamp),
                               drain.reason.value_or("-")));
    }
    // This configuration has no properties, so records of removed ones have no effect, nor do those of
    // targets that left.
    for (const module::RecordedProperty& property : state.properties) {
      const bool is_gone = std::ranges::find(state.shrunk, property.target) != state.shrunk.end();
      if (property.present && !is_gone)
        lines.insert(fmt::format("property {} {}", property.name, text_of(property.target)));
    }
    for (const TargetName& target : state.shrunk) lines.insert("shrunk " + text_of(target));
    if (state.expiration) lines.insert(fmt::format("expiration {}", to_number(state.expiration->value)));
    return lines;
  };
  for (unsigned seed = 1; seed <= 100; ++seed) {
    RandomInstance instance(seed);
    instance.run(30);
    CAPTURE(seed);
    CAPTURE(instance.log());
    CHECK(text_of_state(Present(instance.log()).state) == text_of_state(instance.recorded()));
  }
}

TEST_CASE("imported events are found by the hosts of their ranks") {
  const Present store(restart + update(R"({"property-add":{"p":"1"},"property-remove":{"q":"2"}})") +
                      update(R"({"shrink":"1","nodelist":"n1"})") + update(R"({"expiration":5000})") +
                      R"({"timestamp":3,"name":"offline","context":{"idset":"2-3"}})" + "\n" +
                      R"({"timestamp":4,"name":"drain","context":{"idset":"3","overwrite":0}})");
  CHECK(store.events_of("n0") == Sequences{1});
  CHECK(store.events_of("n1") == Sequences{1, 3, 4});
  CHECK(store.events_of("n2") == Sequences{1, 3, 6});
  CHECK(store.events_of("n3") == Sequences{1, 6, 7});
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
      {nested(63), "log:2: nests deeper than 62"},
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
  CHECK_THROWS_WITH_AS(Present(nested(200000)), "log:1: nests deeper than 62", Error);
  CHECK_THROWS_WITH_AS(Present(std::string(1000000, '[')), "log:1: nests deeper than 62", Error);
}

}  // namespace
}  // namespace resourced::daemon::store
