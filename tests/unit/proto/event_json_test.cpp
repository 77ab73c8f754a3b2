// Resource events (RFC 44) as entries of an event log (RFC 18): the keys of each, there and back.
#include "proto/event_json.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto {
namespace {

using nlohmann::json;

struct Row {
  EventBody body;
  const char* name;
  const char* context;
};

UpdateEvent update() {
  UpdateEvent event;
  event.expiration = 5000.5;
  event.property_add["fast"] = IdSet::parse("0-1");
  event.property_remove["slow"] = IdSet{3};
  return event;
}

DefineEvent define(DefineMethod method) {
  DefineEvent event;
  event.method = method;
  return event;
}

const std::vector<Row>& rows() {
  static const IdSet two = IdSet::parse("1-2");
  static const Hostlist hosts = Hostlist::parse("n[1-2]");
  static const std::vector<Row> table = {
      {RestartEvent{two, IdSet{1}, hosts}, "restart", R"({"ranks":"1-2","online":"1","nodelist":"n[1-2]"})"},
      {define(DefineMethod::configuration), "resource-define", R"({"method":"configuration"})"},
      {define(DefineMethod::dynamic_discovery), "resource-define", R"({"method":"dynamic-discovery"})"},
      {define(DefineMethod::reload), "resource-define", R"({"method":"reload"})"},
      {define(DefineMethod::job_info), "resource-define", R"({"method":"job-info"})"},
      {define(DefineMethod::kvs), "resource-define", R"({"method":"kvs"})"},
      {update(), "resource-update",
       R"({"expiration":5000.5,"property-add":{"fast":"0-1"},"property-remove":{"slow":"3"}})"},
      {DrainEvent{two, hosts, "dimm", Overwrite::nothing}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"dimm","overwrite":0})"},
      {DrainEvent{two, hosts, "new", Overwrite::reason}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"new","overwrite":1})"},
      {DrainEvent{two, hosts, std::nullopt, Overwrite::reason_and_timestamp}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","overwrite":2})"},
      {UndrainEvent{two, hosts, std::nullopt}, "undrain", R"({"idset":"1-2","nodelist":"n[1-2]"})"},
      {UndrainEvent{two, hosts, "fixed"}, "undrain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"fixed"})"},
      {OnlineEvent{two}, "online", R"({"idset":"1-2"})"},
      {OfflineEvent{two}, "offline", R"({"idset":"1-2"})"},
      {TorpidEvent{two}, "torpid", R"({"idset":"1-2"})"},
      {LivelyEvent{two}, "lively", R"({"idset":"1-2"})"},
  };
  return table;
}

TEST_CASE("each event is one line with its timestamp, its name and the keys that RFC 44 gives it") {
  for (const Row& row : rows()) {
    const std::string line = encode_event({1700000000.25, row.body});
    CAPTURE(line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(json::parse(line) ==
          json{{"timestamp", 1700000000.25}, {"name", row.name}, {"context", json::parse(row.context)}});
  }
}

TEST_CASE("what is written is read back; a definition does not carry its R and is passed over") {
  for (const Row& row : rows()) {
    const std::string line = encode_event({1.5, row.body});
    CAPTURE(line);
    const auto event = decode_event(json::parse(line));
    REQUIRE(event.has_value() == !std::holds_alternative<DefineEvent>(row.body));
    if (event) CHECK(encode_event(*event) == line);
  }
}

TEST_CASE("names that RFC 44 does not know are passed over, a timestamp that is none is refused") {
  CHECK_FALSE(decode_event({{"timestamp", 1}, {"name", "truncate"}}).has_value());
  CHECK_FALSE(decode_event({{"timestamp", 1}, {"name", "other"}, {"context", {{"x", 1}}}}).has_value());
  for (const json& timestamp : {json(0), json(-1), json("1"), json()}) {
    CAPTURE(timestamp.dump());
    CHECK_THROWS_AS(static_cast<void>(decode_event(
                        {{"timestamp", timestamp}, {"name", "online"}, {"context", {{"idset", "0"}}}})),
                    Error);
  }
}

}  // namespace
}  // namespace resourced::proto
