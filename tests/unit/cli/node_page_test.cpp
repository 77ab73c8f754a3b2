// The page of a node, and the time since which the node is in its state.
#include "cli/views/node_page.hpp"

#include <cerrno>

#include <doctest/doctest.h>

#include "cli/views/views.hpp"
#include "program_fixture.hpp"

using namespace resourced::cli::views;

namespace resourced::test {
namespace {

using nlohmann::json;

json event(double time, const char* name, const char* context = R"({"idset":"3"})") {
  return {{"timestamp", time}, {"name", name}, {"context", json::parse(context)}};
}

constexpr const char* all_online = R"({"ranks":"2-3","online":"2-3","nodelist":"n[2-3]"})";
constexpr const char* other_online = R"({"ranks":"2-3","online":"2","nodelist":"n[2-3]"})";

std::string since(const std::vector<json>& events, const char* state) {
  NodeHistory history("n3");
  for (const json& entry : events) history.add(entry);
  const auto time = history.since(state);
  return time ? std::to_string(static_cast<int>(to_number(*time))) : "unknown";
}

TEST_CASE("a state lasts since the event that began it, over restarts that do not change it") {
  const json start = event(1, "restart", all_online);
  CHECK(since({start}, "avail") == "1");
  CHECK(since({start, event(2, "restart", all_online)}, "avail") == "1");
  CHECK(since({start, event(2, "offline"), event(3, "offline")}, "offline") == "2");
  CHECK(since({start, event(2, "restart", other_online)}, "offline") == "2");
  CHECK(since({start, event(2, "drain"), event(3, "drain"), event(4, "undrain")}, "avail") == "4");
  CHECK(since({start, event(2, "drain"), event(3, "offline"), event(4, "undrain")}, "offline") == "4");
  CHECK(since({start, event(2, "torpid"), event(3, "restart", all_online)}, "avail") == "3");
  CHECK(since({start, event(2, "torpid"), event(3, "lively")}, "avail") == "3");
}

TEST_CASE("events that do not tell the whole state tell no time") {
  CHECK(since({}, "avail") == "unknown");
  // After a truncation the log does not tell whether the node was drained before.
  const json truncate{{"timestamp", 1}, {"name", "truncate"}};
  CHECK(since({truncate, event(2, "restart", all_online)}, "avail") == "unknown");
  CHECK(since({truncate, event(2, "restart", all_online), event(3, "undrain")}, "avail") == "3");
  // The present state does not follow from the events.
  CHECK(since({event(1, "restart", all_online)}, "exclude") == "unknown");
  CHECK(since({event(1, "restart", all_online), event(2, "shrink")}, "avail") == "unknown");
  CHECK(since({event(1, "restart", all_online), event(2, "shrink")}, "shrunk") == "2");
  CHECK(since({event(1, "restart", all_online), event(2, "shrink"), event(3, "restart", all_online)},
              "avail") == "3");
  CHECK(since({json(1), event(1, "restart", R"({"ranks":1})")}, "avail") == "unknown");
}

TEST_CASE_FIXTURE(ProgramFixture, "a host that left has a page although no event of it is kept") {
  const auto outcome = run_with({"show", "--json", "gone"}, [&] {
    json status = json::parse(status_payload);
    status["shrunk"] = status["returning"] = "gone";
    bus.respond(bus.receive(), status.dump());
    const auto request = bus.receive();
    CHECK(request.topic() == "resource.journal");
    CHECK(json::parse(request.payload())["targets"] == "gone");
    bus.fail(request, EINVAL, "unknown host: gone");
  });
  CHECK(outcome.status == 0);
  CHECK(json::parse(outcome.out) ==
        json::parse(R"({"host":"gone","rank":null,"state":"shrunk","since":null,"up":false,"online":false,
          "torpid":false,"returning":true,"drain":null,"scheduled":[],"events":[]})"));
}

TEST_CASE("the last events are kept, and no more") {
  NodeHistory history("n3");
  for (int i = 0; i < 25; ++i) history.add(event(i, "online"));
  CHECK(history.last().size() == NodeHistory::most);
  CHECK(history.last().front()["timestamp"] == 15);
}

TEST_CASE("ages are whole units, and actors have their kind") {
  CHECK(format_age(Seconds(-5)) == "0s");
  CHECK(format_age(Seconds(59.9)) == "59s");
  CHECK(format_age(Seconds(60)) == "1m");
  CHECK(format_age(Seconds(7199)) == "1h");
  CHECK(format_age(Seconds(86400 * 400)) == "400d");
  const UserName names = [](std::uint32_t id) {
    return id == 1 ? std::optional<std::string>("alice") : std::nullopt;
  };
  CHECK(format_actor(module::ByUser{1}, names) == "alice");
  CHECK(format_actor(module::ByUser{2}, names) == "uid 2");
  CHECK(format_actor(module::ByHost{"n3"}, names) == "host n3");
}

TEST_CASE("the page of a drained node whose agent is silent says so") {
  const auto status = proto::topics::parse_status(
      {{"R",
        {{"version", 1},
         {"execution",
          {{"R_lite", {{{"rank", "3"}, {"children", {{"core", "0"}}}}}}, {"nodelist", {"n3"}}}}}},
       {"drain", {{"3", {{"timestamp", 5.0}, {"reason", "disk"}}}}},
       {"online", "3"},
       {"offline", ""},
       {"exclude", ""},
       {"torpid", "3"}});
  const NodeHistory history("n3");
  const NodeFacts facts{status, 3, std::nullopt, std::nullopt, std::nullopt, false, history};
  CHECK(node_json(facts)["state"] == "drained");
  CHECK(node_json(facts)["torpid"] == true);
  CHECK(node_page(facts, wall_time(65), {}).find("(1m ago), torpid\n") != std::string::npos);
}

TEST_CASE("memory comes from the vertices of a graph") {
  const json r = json::parse(R"({"scheduling":{"graph":{"nodes":[
    {"id":"0","metadata":{"type":"node","rank":0}},
    {"id":"1","metadata":{"type":"memory","rank":0,"size":32,"unit":"GB"}},
    {"id":"2","metadata":{"type":"memory","rank":0,"size":32,"unit":"GB"}},
    {"id":"3","metadata":{"type":"memory","rank":1,"size":1,"unit":"furlong"}},
    {"id":"4","metadata":{"type":"memory","rank":2,"size":1048576,"unit":""}}]}}})");
  CHECK(memory_of_graph(r) ==
        std::map<text::IdSet::Id, double>{{0, 64.0 * 1024 * 1024 * 1024}, {2, 1048576.0}});
  CHECK(memory_of_graph(json::parse(R"({"version":1})")).empty());
  CHECK(memory_of_graph(json::parse(R"({"scheduling":{"graph":{"nodes":[1]}}})")).empty());
}

}  // namespace
}  // namespace resourced::test
