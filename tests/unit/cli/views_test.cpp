// Output of status, drain, list and info for payloads of the daemon.
#include "cli/views/views.hpp"

#include <cstdlib>
#include <ctime>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/views/event_text.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"

using namespace resourced;
using namespace resourced::cli::views;
using cli::commands::parse_expiration;
using nlohmann::json;

namespace {

json make_r(const std::string& ranks, const std::string& hosts) {
  return {{"version", 1},
          {"execution",
           {{"R_lite", {{{"rank", ranks}, {"children", {{"core", "0-3"}, {"gpu", "0"}}}}}},
            {"nodelist", {hosts}},
            {"starttime", 0.0},
            {"expiration", 0.0}}}};
}

const json no_r =
    json::parse(R"({"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[]}})");

/// Eight nodes: 0 excluded and down, 1-2 drained (2 is down), 3 torpid, 4 offline, 5-7 available.
json status() {
  return {{"R", make_r("0-7", "node[0-7]")},
          {"drain",
           {{"1", {{"timestamp", 1700000000.0}, {"reason", "disk"}}},
            {"2", {{"timestamp", 1600000000.0}, {"reason", ""}}}}},
          {"online", "1,3,5-7"},
          {"offline", "0,2,4"},
          {"exclude", "0"},
          {"torpid", "3"}};
}

std::string lines(const Listing& listing, const std::string& format) {
  OutputOptions options;
  options.format = format;
  options.no_header = true;
  return render(listing, options);
}

std::string status_lines(const std::string& states, const std::string& targets = {},
                         const json& payload = status()) {
  ViewFilter filter;
  if (!states.empty()) filter.states = parse_status_states(states);
  filter.targets = targets;
  return lines(status_view(payload, filter), "{state} {up} {nnodes} {ranks} {nodelist}");
}

json sched_status() {
  return {{"all", make_r("0-7", "node[0-7]")},
          {"allocated", make_r("1-2", "node[1-2]")},
          {"down", make_r("2-3", "node[2-3]")}};
}

std::string sched_lines(const std::string& states, const std::string& targets = {},
                        const json& payload = sched_status()) {
  SchedFilter filter;
  if (!states.empty()) filter.states = parse_sched_states(states);
  if (!targets.empty()) filter.targets = text::IdSet::parse(targets);
  return lines(sched_view(payload, filter), "{state} {nnodes} {ncores} {ngpus} {nodelist}");
}

}  // namespace

TEST_SUITE("views") {
  TEST_CASE("status: each target in one state, online and not in rows of their own") {
    CHECK(status_lines("") ==
          "avail yes 3 5-7 node[5-7]\n"
          "drained no 1 1 node1\n"
          "drained* no 1 2 node2\n"
          "exclude* no 1 0 node0\n"
          "torpid no 1 3 node3\n"
          "offline no 1 4 node4\n");
  }

  TEST_CASE("status: the standard table") {
    CHECK(render(status_view(status()), {}) ==
          "   STATE UP  NNODES NODELIST\n"
          "   avail yes      3 node[5-7]\n"
          " drained no       1 node1\n"
          "drained* no       1 node2\n"
          "exclude* no       1 node0\n"
          "  torpid no       1 node3\n"
          " offline no       1 node4\n");
  }

  TEST_CASE("status: only some states; offline is all that are not online") {
    CHECK(status_lines("avail") == "avail yes 3 5-7 node[5-7]\n");
    CHECK(status_lines("drain") == "draining no 0\ndrained no 1 1 node1\ndrained* no 1 2 node2\n");
    CHECK(status_lines("offline") == "drained* no 1 2 node2\nexclude* no 1 0 node0\noffline no 1 4 node4\n");
    CHECK(status_lines("avail,drained,exclude,torpid,offline") == status_lines(""));
    CHECK(status_lines("all") == status_lines("avail,drain,exclude,torpid,offline"));
    CHECK_THROWS_AS(status_lines("broken"), UsageError);
    CHECK_THROWS_AS(status_lines("avail,"), UsageError);
  }

  TEST_CASE("status: a drained target with an allocation is draining") {
    auto payload = status();
    payload["allocated"] = "1,5";
    CHECK(status_lines("drain", "", payload) == "draining no 1 1 node1\ndrained* no 1 2 node2\n");
    CHECK(status_lines("draining", "", payload) == "draining no 1 1 node1\n");
    CHECK(status_lines("drained", "", payload) == "drained* no 1 2 node2\n");
    CHECK(status_lines("avail", "", payload) == "avail yes 3 5-7 node[5-7]\n");
    payload["online"] = "3,5-7";
    CHECK(status_lines("draining", "", payload) == "draining* no 1 1 node1\n");
  }

  TEST_CASE("status: scripts read the state, and whether its targets are online, each by itself") {
    OutputOptions as_json;
    as_json.json = true;
    ViewFilter filter;
    filter.states = {"drained"};
    const std::string rows = render(status_view(status(), filter), as_json);
    const auto first = json::parse(rows.substr(0, rows.find('\n')));
    const auto second = json::parse(rows.substr(rows.find('\n') + 1));
    CHECK(first["state"] == "drained");
    CHECK(first["up"] == false);
    CHECK(first["online"] == true);
    CHECK(second["state"] == "drained");
    CHECK(second["up"] == false);
    CHECK(second["online"] == false);
  }

  TEST_CASE("status: a state asked for by name has a row even when it is empty") {
    auto payload = status();
    payload["drain"] = json::object();
    payload["online"] = "0-7";
    payload["offline"] = "";
    payload["torpid"] = "";
    payload["exclude"] = "";
    CHECK(status_lines("", "", payload) == "avail yes 8 0-7 node[0-7]\n");
    CHECK(status_lines("drained,offline", "", payload) == "drained no 0\noffline no 0\n");
  }

  TEST_CASE("status: torpid is all that are silent, whatever else they are") {
    auto payload = status();
    payload["torpid"] = "1,3";
    CHECK(status_lines("torpid", "", payload) == "drained no 1 1 node1\ntorpid no 1 3 node3\n");
    CHECK(status_lines("torpid", "1", payload) == "drained no 1 1 node1\n");
    CHECK(status_lines("torpid", "0,2", payload) == "torpid no 0\n");
    CHECK(status_lines("drained,torpid", "1", payload) == "drained no 1 1 node1\n");
  }

  TEST_CASE("status: only some targets, by rank or by host") {
    CHECK(status_lines("", "4-5") == "avail yes 1 5 node5\noffline no 1 4 node4\n");
    CHECK(status_lines("", "node[1,7]") == "avail yes 1 7 node7\ndrained no 1 1 node1\n");
    // Ranks and hosts that the inventory lacks are left out.
    CHECK(status_lines("", "7-8") == "avail yes 1 7 node7\n");
    CHECK(status_lines("", "node7,other") == "avail yes 1 7 node7\n");
  }

  TEST_CASE("status: rows by the reason and the time of drains, only if asked for") {
    auto payload = status();
    payload["drain"]["5"] = {{"timestamp", 1700000001.0}, {"reason", "disk"}};
    const auto drained = [&](bool by_reason, bool by_time) {
      ViewFilter filter;
      filter.states = {"drained"};
      filter.by_reason = by_reason;
      filter.by_time = by_time;
      return lines(status_view(payload, filter),
                   "{statex} {state} {up.ascii} {ranks} {reason}|{timestamp!d:%S}");
    };
    CHECK(drained(false, false) == "drained drained n 1,5 |\ndrained drained* n 2 |\n");
    CHECK(drained(true, false) == "drained drained n 1,5 disk|\ndrained drained* n 2 |\n");
    CHECK(drained(true, true) ==
          "drained drained n 1 disk|20\ndrained drained n 5 disk|21\ndrained drained* n 2 |40\n");
    payload["drain"] = json::object();
    CHECK(drained(true, true) == "drained drained n  |\n");
  }

  TEST_CASE("list: the short form of the resources") {
    SchedFilter filter;
    filter.states = {"down"};
    CHECK(lines(sched_view(sched_status(), filter), "{state} {rlist}") == "down rank[2-3]/core[0-3],gpu0\n");
  }

  TEST_CASE("a time is shown as the nearest second, as Flux rounds the times of drains") {
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(format_time(wall_time(0.4)) == "1970-01-01T00:00:00Z");
    CHECK(format_time(wall_time(0.6)) == "1970-01-01T00:00:01Z");
  }

  TEST_CASE("drain: oldest first, with local time and reason") {
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(render(drain_view(status()), {}) ==
          "TIMESTAMP            STATE    RANK REASON NODELIST\n"
          "2020-09-13T12:26:40Z drained* 2           node2\n"
          "2023-11-14T22:13:20Z drained  1    disk   node1\n");
    ViewFilter filter;
    filter.targets = "1";
    OutputOptions as_json;
    as_json.json = true;
    CHECK(json::parse(render(drain_view(status(), filter), as_json)) == json{{"timestamp", 1700000000.0},
                                                                             {"state", "drained"},
                                                                             {"ranks", "1"},
                                                                             {"nnodes", 1},
                                                                             {"reason", "disk"},
                                                                             {"nodelist", "node1"},
                                                                             {"user", nullptr},
                                                                             {"by", nullptr},
                                                                             {"ticket", nullptr},
                                                                             {"online", true}});
  }

  TEST_CASE("drain: targets that are offline as well have a row of their own, with a star") {
    auto payload = status();
    payload["drain"] = {{"1-4", {{"timestamp", 1700000000.0}, {"reason", "power"}}}};
    payload["allocated"] = "3-4";
    CHECK(lines(drain_view(payload), "{state} {ranks} {online}") ==
          "draining 3 yes\ndraining* 4 no\ndrained 1 yes\ndrained* 2 no\n");
  }

  TEST_CASE("drain: who did it, by name where there is one") {
    const auto shown = [](const json& by, const char* format) {
      auto payload = status();
      payload["drain"] = {{"1", {{"timestamp", 1700000000}, {"reason", ""}, {"by", by}}}};
      const auto name = [](std::uint32_t id) {
        return id == 7 ? std::optional<std::string>("alice") : std::nullopt;
      };
      OutputOptions options;
      options.no_header = true;
      options.format = format;
      return render(drain_view(payload, {}, name), options);
    };
    CHECK(shown({{"userid", 7}}, "{user} {by}") == "alice {\"userid\":7}\n");
    CHECK(shown({{"userid", 8}}, "{user}") == "8\n");
    CHECK(shown({{"key", "login1"}}, "{user}") == "login1\n");
    CHECK(shown({{"address", "10.0.0.1"}}, "{user}") == "10.0.0.1\n");
    CHECK(shown({{"host", "node1"}}, "{user}") == "node1\n");
    CHECK(shown({{"signal", "HUP"}}, "{user}") == "HUP\n");
    CHECK(shown({{"key", "a\nb\033[2J"}}, "{user}") == "a\\nb\\u001b[2J\n");
    CHECK_THROWS_AS(shown(7, "{user}"), Error);
    CHECK_THROWS_AS(shown({{"friend", "x"}}, "{user}"), Error);
    OutputOptions as_json;
    as_json.json = true;
    auto payload = status();
    payload["drain"] = {{"1", {{"timestamp", 1700000000}, {"reason", ""}, {"by", {{"userid", 7}}}}}};
    const json row = json::parse(render(drain_view(payload), as_json));
    CHECK(row["user"] == "7");
    CHECK(row["by"] == json{{"userid", 7}});
    auto by_nobody = status();
    OutputOptions options;
    options.no_header = true;
    options.format = "{user}";
    CHECK(render(drain_view(by_nobody), options) == "-\n-\n");
  }

  TEST_CASE("list: free, allocated, down") {
    CHECK(sched_lines("") ==
          "free 5 20 5 node[0,4-7]\n"
          "allocated 2 8 2 node[1-2]\n"
          "down 2 8 2 node[2-3]\n");
    CHECK(sched_lines("down,free") == "free 5 20 5 node[0,4-7]\ndown 2 8 2 node[2-3]\n");
    CHECK(sched_lines("", "0-1") == "free 1 4 1 node0\nallocated 1 4 1 node1\ndown 0 0 0\n");
    CHECK_THROWS_AS(sched_lines("avail"), UsageError);
  }

  TEST_CASE("list: what nobody reports about is up, not free") {
    json payload = sched_status();
    payload["reported"] = "0-4";
    CHECK(sched_lines("", "", payload) ==
          "free 2 8 2 node[0,4]\n"
          "up 3 12 3 node[5-7]\n"
          "allocated 2 8 2 node[1-2]\n"
          "down 2 8 2 node[2-3]\n");
    CHECK(sched_lines("free,up", "4-5", payload) == "free 1 4 1 node4\nup 1 4 1 node5\n");
    SchedFilter filter;
    filter.states = {"up"};
    CHECK(info_line(sched_resources(payload, filter).counts()) == "3 Nodes, 12 Cores, 3 GPUs");
    payload["reported"] = "";
    CHECK(sched_lines("free,up", "", payload) == "free 0 0 0\nup 5 20 5 node[0,4-7]\n");
    // A Flux instance has no key `reported`: its job manager reports about all targets.
    CHECK(sched_lines("up") == "up 0 0 0\n");
    CHECK(sched_lines("all") == sched_lines(""));
    payload["reported"] = 1;
    CHECK_THROWS_AS(sched_lines("", "", payload), Error);
  }

  TEST_CASE("info and R show: what is allocated and down counts once") {
    const auto count = [](const std::string& states, const std::string& targets = {}) {
      SchedFilter filter;
      if (!states.empty()) filter.states = parse_sched_states(states);
      if (!targets.empty()) filter.targets = text::IdSet::parse(targets);
      return info_line(sched_resources(sched_status(), filter).counts());
    };
    CHECK(count("") == "8 Nodes, 32 Cores, 8 GPUs");
    CHECK(count("all") == "8 Nodes, 32 Cores, 8 GPUs");
    CHECK(count("allocated,down") == "3 Nodes, 12 Cores, 3 GPUs");
    CHECK(count("free", "0-4") == "2 Nodes, 8 Cores, 2 GPUs");
    const json empty = {{"all", no_r}, {"allocated", no_r}, {"down", no_r}};
    CHECK(info_line(sched_resources(empty).counts()) == "0 Nodes, 0 Cores, 0 GPUs");
  }

  TEST_CASE("answers that are not what they should be are errors") {
    for (const auto* key : {"R", "drain", "online", "exclude", "torpid"}) {
      CAPTURE(key);
      auto payload = status();
      payload.erase(key);
      CHECK_THROWS_AS(static_cast<void>(status_view(payload)), Error);
    }
    auto payload = status();
    payload["drain"]["1"].erase("timestamp");
    CHECK_THROWS_AS(static_cast<void>(drain_view(payload)), Error);
    CHECK_THROWS_AS(static_cast<void>(sched_view(json::object())), Error);
    CHECK_THROWS_AS(static_cast<void>(sched_view(json::array())), Error);
  }

  TEST_CASE("expiration: epoch seconds, from now on, or never") {
    CHECK(parse_expiration("0", wall_time(1000)) == wall_time(0));
    CHECK(parse_expiration("never", wall_time(1000)) == wall_time(0));
    CHECK(parse_expiration("1893456000.5", wall_time(1000)) == wall_time(1893456000.5));
    CHECK(parse_expiration("+1.5h", wall_time(1000)) == wall_time(6400));
    for (const auto* text : {"", "+", "soon", "-1", "+inf", "inf", "nan", "1 ", "+1x"}) {
      CAPTURE(text);
      CHECK_THROWS_AS(static_cast<void>(parse_expiration(text, wall_time(1000))), UsageError);
    }
  }

  TEST_CASE("events: one line each") {
    const auto drain = json::parse(
        R"({"timestamp":1700000000.25,"name":"drain","context":{"idset":"1-2","nodelist":"node[1-2]","overwrite":0}})");
    CHECK(EventFormatter().format(drain) ==
          "1700000000.250000 drain idset=\"1-2\" nodelist=\"node[1-2]\" overwrite=0");
    CHECK(EventFormatter().format({{"timestamp", 1}, {"name", "truncate"}}) == "1.000000 truncate");
    for (const auto* text :
         {"1", "{}", R"({"timestamp":"1","name":"x"})", R"({"timestamp":1,"name":"x","context":1})"}) {
      CAPTURE(text);
      CHECK_THROWS_AS(static_cast<void>(EventFormatter().format(json::parse(text))), Error);
    }
  }
}

TEST_SUITE("moves") {
  // Target 6 moves from gpu to debug, 5 from gpu to no partition, 7 from no partition to debug.
  json divided() {
    auto payload = status();
    payload["partitions"] = {
        {"", {{"targets", "5"}, {"held", true}, {"waiting", "5"}, {"leaving", "7"}}},
        {"batch", {{"targets", "0-2"}, {"held", true}, {"waiting", ""}, {"leaving", ""}}},
        {"debug", {{"targets", "4,6-7"}, {"held", false}, {"waiting", "6-7"}, {"leaving", ""}}},
        {"gpu", {{"targets", "3"}, {"held", true}, {"waiting", ""}, {"leaving", "5-6"}}}};
    return payload;
  }

  TEST_CASE("a move is told with its targets, where they are, and where they go") {
    CHECK(describe_moves(divided()) ==
          "targets 6 wait to move from partition gpu to partition debug: the holder of partition gpu must "
          "release them\n"
          "targets 5 wait to move from partition gpu to the rest: the holder of partition gpu must release "
          "them\n"
          "targets 7 wait to move from the rest to partition debug: the holder of the rest must release "
          "them\n");
    ViewFilter filter;
    filter.targets = "0-4,7";
    CHECK(describe_moves(divided(), filter) ==
          "targets 7 wait to move from the rest to partition debug: the holder of the rest must release "
          "them\n");
  }

  TEST_CASE("a target that nobody keeps waits for the next acquire of its partition") {
    auto payload = divided();
    payload["partitions"][""]["waiting"] = "3,5";
    payload["partitions"]["batch"]["waiting"] = "0";
    CHECK(describe_moves(payload).ends_with(
        "targets 0 wait for the holder of partition batch to acquire again\n"
        "targets 3 wait for the holder of the rest to acquire again\n"));
    ViewFilter filter;
    filter.targets = "0";
    CHECK(describe_moves(payload, filter) ==
          "targets 0 wait for the holder of partition batch to acquire again\n");
    CHECK(lines(status_view(payload, filter), "{nodelist}: {moves}") ==
          "node0: 0 with the next acquire of partition batch\n");
    OutputOptions as_json;
    as_json.json = true;
    CHECK(json::parse(render(status_view(payload, filter), as_json))["moves"] ==
          json::parse(R"([{"ranks": "0", "from": "batch", "to": "batch"}])"));
    // Where the inventory is not divided, there is no rest of it.
    payload["partitions"] = {{"", {{"targets", "0-7"}, {"held", true}, {"waiting", "2"}, {"leaving", ""}}}};
    CHECK(describe_moves(payload) == "targets 2 wait for the holder of the resources to acquire again\n");
  }

  TEST_CASE("nothing is told where nothing waits") {
    CHECK(describe_moves(status()).empty());
    auto payload = divided();
    for (const auto* name : {"", "debug", "gpu"}) payload["partitions"].erase(name);
    CHECK(describe_moves(payload).empty());
  }

  TEST_CASE("each row of --json has the moves of its own targets") {
    OutputOptions as_json;
    as_json.json = true;
    ViewFilter filter;
    filter.targets = "0,4-6";
    const std::string rows = render(status_view(divided(), filter), as_json);
    CHECK(
        rows ==
        R"({"state":"avail","up":true,"nnodes":2,"ranks":"5-6","nodelist":"node[5-6]",)"
        R"("moves":[{"from":"gpu","ranks":"6","to":"debug"},{"from":"gpu","ranks":"5","to":null}],"online":true})"
        "\n"
        R"({"state":"exclude","up":false,"nnodes":1,"ranks":"0","nodelist":"node0","moves":[],"online":false})"
        "\n"
        R"({"state":"offline","up":false,"nnodes":1,"ranks":"4","nodelist":"node4","moves":[],"online":false})"
        "\n");
    filter.targets = "5-6";
    CHECK(lines(status_view(divided(), filter), "{nodelist}: {moves}") ==
          "node[5-6]: 6 from partition gpu to partition debug, 5 from partition gpu to the rest\n");
  }

  TEST_CASE("targets that left are a state of its own, which has to be named") {
    auto payload = status();
    payload["shrunk"] = "old[1-2]";
    ViewFilter filter;
    const auto shown = [&] {
      return lines(status_view(payload, filter), "{state} {up} {nnodes} {nodelist}");
    };
    CHECK(shown().find("shrunk") == std::string::npos);
    filter.states = parse_status_states("all");
    CHECK(shown().find("shrunk") == std::string::npos);
    filter.states = parse_status_states("shrunk");
    CHECK(shown() == "shrunk no 2 old[1-2]\n");
    CHECK(lines(status_view(payload, filter),
                "{state}|{statex}|{up.ascii}|{ranks}|{moves}|{online}|{reason}|{timestamp}") ==
          "shrunk|shrunk|n|||no||\n");
    filter.targets = "5-6";
    CHECK(shown() == "shrunk no 0\n");
    filter.targets = "old[2-3]";
    CHECK(shown() == "shrunk no 1 old2\n");
    payload["shrunk"] = 1;
    CHECK_THROWS_AS(static_cast<void>(status_view(payload)), Error);
  }

  TEST_CASE("partitions that are not what they should be are an error") {
    for (const auto* key : {"targets", "waiting", "leaving"}) {
      CAPTURE(key);
      auto payload = divided();
      payload["partitions"]["debug"].erase(key);
      CHECK_THROWS_AS(static_cast<void>(describe_moves(payload)), Error);
      CHECK_THROWS_AS(static_cast<void>(status_view(payload)), Error);
    }
  }
}

TEST_SUITE("text from outside") {
  TEST_CASE("a reason with an escape sequence and a line end is one row, and exact in JSON") {
    auto payload = status();
    const std::string reason = "\033[2Jgone\nfake row\tx";
    payload["drain"] = {{"1", {{"timestamp", 1700000000.0}, {"reason", reason}}}};
    const auto shown = lines(drain_view(payload), "{reason}|");
    CHECK(shown == "\\u001b[2Jgone\\nfake row\\tx|\n");
    const auto table = render(drain_view(payload), {});
    CHECK(table.find("\\u001b[2Jgone\\nfake row\\tx node1\n") != std::string::npos);
    CHECK(table.find('\033') == std::string::npos);
    OutputOptions as_json;
    as_json.json = true;
    CHECK(json::parse(render(drain_view(payload), as_json))["reason"] == reason);
  }

  TEST_CASE("events, their names and keys too") {
    const json event = {{"timestamp", 1}, {"name", "x\033"}, {"context", {{"k\n", "v\033\u009b\x7f"}}}};
    CHECK(EventFormatter().format(event) == R"(1.000000 x\u001b k\n="v\u001b\u009b\u007f")");
  }

  TEST_CASE("the names of partitions in what status tells") {
    auto payload = status();
    payload["partitions"] = {
        {"", {{"targets", "0-6"}, {"held", true}, {"waiting", ""}, {"leaving", "7"}}},
        {"a\033\n", {{"targets", "7"}, {"held", false}, {"waiting", "7"}, {"leaving", ""}}}};
    CHECK(describe_moves(payload) ==
          "targets 7 wait to move from the rest to partition a\\u001b\\n: the holder of the rest must "
          "release them\n");
  }
}
