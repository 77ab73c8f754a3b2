// Resource events (RFC 44) as entries of an event log (RFC 18): the keys of each, encoded and decoded.
#include "proto/event_json.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto {

using module::DefineEvent;
using module::DefineMethod;
using module::DrainEvent;
using module::Overwrite;
using module::UndrainEvent;
using text::Hostlist;
using text::IdSet;

namespace {

using nlohmann::json;

struct Row {
  module::EventBody body;
  const char* name;
  const char* context;
};

module::ExpirationEvent expires(double time) { return {wall_time(time)}; }

module::PropertyEvent properties() {
  return {{{"fast", IdSet::parse("0-1")}}, {{"slow", IdSet{3}}}, Hostlist::parse("n[0-1,3]")};
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
      {module::RestartEvent{two, IdSet{1}, hosts}, "restart",
       R"({"ranks":"1-2","online":"1","nodelist":"n[1-2]"})"},
      {define(DefineMethod::configuration), "resource-define", R"({"method":"configuration"})"},
      {define(DefineMethod::dynamic_discovery), "resource-define", R"({"method":"dynamic-discovery"})"},
      {define(DefineMethod::reload), "resource-define", R"({"method":"reload"})"},
      {define(DefineMethod::job_info), "resource-define", R"({"method":"job-info"})"},
      {define(DefineMethod::kvs), "resource-define", R"({"method":"kvs"})"},
      {expires(5000.5), "resource-update", R"({"expiration":5000.5})"},
      {expires(0), "resource-update", R"({"expiration":0.0})"},
      {properties(), "property-update",
       R"({"property-add":{"fast":"0-1"},"property-remove":{"slow":"3"},"nodelist":"n[0-1,3]"})"},
      {module::ShrinkEvent{two, hosts}, "shrink", R"({"idset":"1-2","nodelist":"n[1-2]"})"},
      {module::LossEvent{two, hosts}, "loss", R"({"idset":"1-2","nodelist":"n[1-2]"})"},
      {module::UnshrinkEvent{two, hosts}, "unshrink", R"({"idset":"1-2","nodelist":"n[1-2]"})"},
      {module::ForgetEvent{hosts}, "forget", R"({"nodelist":"n[1-2]"})"},
      {DrainEvent{{"dimm"}, two, hosts, Overwrite::nothing}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"dimm","overwrite":0})"},
      {DrainEvent{{"new"}, two, hosts, Overwrite::reason}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"new","overwrite":1})"},
      {DrainEvent{{}, two, hosts, Overwrite::reason_and_timestamp}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","overwrite":2})"},
      {UndrainEvent{two, hosts, std::nullopt, Overwrite::nothing}, "undrain",
       R"({"idset":"1-2","nodelist":"n[1-2]","overwrite":0})"},
      {UndrainEvent{two, hosts, "fixed", Overwrite::reason}, "undrain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"fixed","overwrite":1})"},
      {UndrainEvent{two, hosts, "fixed", Overwrite::reason_and_timestamp}, "undrain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"fixed","overwrite":2})"},
      {DrainEvent{{"power", wall_time(200.5)}, two, hosts, Overwrite::nothing, true}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"power","overwrite":0,"until":200.5,"scheduled":true})"},
      {UndrainEvent{two, hosts, std::nullopt, Overwrite::nothing, true}, "undrain",
       R"({"idset":"1-2","nodelist":"n[1-2]","overwrite":0,"keeps-scheduled":true})"},
      {module::ScheduleEvent{{"power", wall_time(200.5)}, two, hosts, wall_time(100)}, "drain-schedule",
       R"({"idset":"1-2","nodelist":"n[1-2]","from":100.0,"until":200.5,"reason":"power"})"},
      {DrainEvent{{"power", wall_time(200.5), "HW-1"}, two, hosts, Overwrite::nothing}, "drain",
       R"({"idset":"1-2","nodelist":"n[1-2]","reason":"power","overwrite":0,"until":200.5,"ticket":"HW-1"})"},
      {module::ScheduleEvent{{{}, {}, "HW-1"}, two, hosts, wall_time(100)}, "drain-schedule",
       R"({"idset":"1-2","nodelist":"n[1-2]","from":100.0,"ticket":"HW-1"})"},
      {module::ScheduleEvent{{}, two, hosts, wall_time(100)}, "drain-schedule",
       R"({"idset":"1-2","nodelist":"n[1-2]","from":100.0})"},
      {module::CancelEvent{two, hosts}, "drain-cancel", R"({"idset":"1-2","nodelist":"n[1-2]"})"},
      {module::CancelEvent{two, hosts, wall_time(100)}, "drain-cancel",
       R"({"idset":"1-2","nodelist":"n[1-2]","from":100.0})"},
      {module::EvictEvent{two, hosts, "batch", module::ByUser{7}, wall_time(100), "it hangs"}, "evict",
       R"({"idset":"1-2","nodelist":"n[1-2]","partition":"batch","holder":{"userid":7},"since":100.0,"reason":"it hangs"})"},
      {module::EvictEvent{two, hosts}, "evict",
       R"({"idset":"1-2","nodelist":"n[1-2]","partition":"","since":0.0})"},
      {module::OnlineEvent{two}, "online", R"({"idset":"1-2"})"},
      {module::OfflineEvent{two}, "offline", R"({"idset":"1-2"})"},
      {module::TorpidEvent{two}, "torpid", R"({"idset":"1-2"})"},
      {module::LivelyEvent{two}, "lively", R"({"idset":"1-2"})"},
  };
  return table;
}

TEST_CASE("an entry is read whatever its name, and names the key that is wrong") {
  const json entry = json::parse(R"({"timestamp":1.5,"name":"no-such","context":{"x":[1]}})");
  const EventEntry read = read_event_entry(entry);
  CHECK(read.timestamp == wall_time(1.5));
  CHECK(read.name == "no-such");
  REQUIRE(read.context != nullptr);
  CHECK(*read.context == json::parse(R"({"x":[1]})"));
  const json bare = json::parse(R"({"timestamp":1,"name":"x"})");
  CHECK(read_event_entry(bare).context == nullptr);
  for (const auto& [text, error] : std::vector<std::pair<const char*, const char*>>{
           {"[]", "must be an object"},
           {R"({"name":"x"})", "timestamp: must be a number"},
           {R"({"timestamp":"1","name":"x"})", "timestamp: must be a number"},
           {R"({"timestamp":1})", "name: must be a string"},
           {R"({"timestamp":1,"name":2})", "name: must be a string"},
           {R"({"timestamp":1,"name":"x","context":[1]})", "context: must be an object"},
           {R"({"timestamp":1,"name":"x","context":null})", "context: must be an object"}}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(static_cast<void>(read_event_entry(json::parse(text))), error, Error);
  }
}

TEST_CASE("each event is one line with its timestamp, its name and the keys that RFC 44 gives it") {
  for (const Row& row : rows()) {
    const std::string line = encode_event({wall_time(1700000000.25), row.body});
    CAPTURE(line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(json::parse(line) ==
          json{{"timestamp", 1700000000.25}, {"name", row.name}, {"context", json::parse(row.context)}});
  }
}

TEST_CASE("what is written is read back; a definition does not carry its R and is passed over") {
  for (const Row& row : rows()) {
    const std::string line = encode_event({wall_time(1.5), row.body});
    CAPTURE(line);
    const auto event = decode_event(json::parse(line));
    REQUIRE(event.has_value() == !std::holds_alternative<DefineEvent>(row.body));
    if (event) CHECK(encode_event(*event) == line);
  }
}

TEST_CASE("an event that somebody caused names the actor, last in its context, and is read back with it") {
  const std::vector<std::pair<module::Actor, const char*>> actors = {
      {module::ByUser{0}, R"({"userid":0})"},
      {module::ByUser{4294967294}, R"({"userid":4294967294})"},
      {module::ByKey{"login1"}, R"({"key":"login1"})"},
      {module::ByKey{"a\n\"b"}, R"({"key":"a\n\"b"})"},
      {module::ByAddress{"10.0.0.1"}, R"({"address":"10.0.0.1"})"},
      {module::ByHost{"n1"}, R"({"host":"n1"})"},
      {module::BySignal{"HUP"}, R"({"signal":"HUP"})"}};
  for (const auto& [actor, text] : actors) {
    CAPTURE(text);
    for (const Row& row : rows()) {
      const std::string plain = encode_event({wall_time(1.5), row.body});
      const std::string line = encode_event({wall_time(1.5), row.body, actor});
      CHECK(line == plain.substr(0, plain.size() - 2) + R"(,"by":)" + text + "}}");
      CHECK(without_actor(line, actor) == plain);
      CHECK(without_actor(plain, std::nullopt) == plain);
      const auto event = decode_event(json::parse(line));
      if (event) CHECK(event->by == actor);
    }
  }
}

TEST_CASE("an actor of another form is refused") {
  for (const char* by : {"null", "7", R"("root")", "[]", "{}", R"({"userid":-1})", R"({"userid":4294967296})",
                         R"({"userid":1.0})", R"({"userid":"1"})", R"({"key":""})", R"({"key":1})",
                         R"({"key":"a","host":"b"})", R"({"friend":"a"})"}) {
    CAPTURE(by);
    const json entry{
        {"timestamp", 7}, {"name", "online"}, {"context", {{"idset", "1"}, {"by", json::parse(by)}}}};
    CHECK_THROWS_WITH_AS(static_cast<void>(decode_event(entry)),
                         "context.by: must be an object with one of userid, key, address, host and signal",
                         Error);
  }
}

TEST_CASE("times have a decimal point whatever their value, and integers are read") {
  const struct {
    double time;
    const char* text;
  } rows[] = {{1, "1.0"},        {1795297018, "1795297018.0"}, {1795297018.25, "1795297018.25"},
              {1e16, "1.0e+16"}, {1e300, "1.0e+300"},          {5e-324, "5.0e-324"}};
  for (const auto& row : rows) {
    CHECK(encode_event({wall_time(row.time), expires(row.time)}) ==
          fmt::format(R"({{"timestamp":{0},"name":"resource-update","context":{{"expiration":{0}}}}})",
                      row.text));
    CHECK(json::parse(row.text).get<double>() == row.time);
  }
  const auto event =
      decode_event(json::parse(R"({"timestamp":7,"name":"resource-update","context":{"expiration":9}})"));
  REQUIRE(event);
  CHECK(event->timestamp == wall_time(7));
  CHECK(std::get<module::ExpirationEvent>(event->body).expiration == wall_time(9));
}

TEST_CASE("the one form that earlier daemons had for all changes of the inventory is read") {
  const auto read = [](const char* context) {
    const auto event =
        decode_event({{"timestamp", 7}, {"name", "resource-update"}, {"context", json::parse(context)}});
    REQUIRE(event);
    return event->body;
  };
  const auto properties = std::get<module::PropertyEvent>(
      read(R"({"property-add":{"fast":"0-1"},"property-remove":{"slow":"3"}})"));
  CHECK(properties.added.at("fast").encode() == "0-1");
  CHECK(properties.removed.at("slow").encode() == "3");
  const auto shrink = std::get<module::ShrinkEvent>(read(R"({"shrink":"1-2","nodelist":"n[1-2]"})"));
  CHECK(shrink.ranks.encode() == "1-2");
  CHECK(shrink.nodelist.encode() == "n[1-2]");
  // A key that is not known changes nothing.
  CHECK(std::get<module::PropertyEvent>(read(R"({"later":1})")).added.empty());
  // No version wrote several changes at once.
  for (const char* several : {R"({"expiration":5.0,"property-add":{"fast":"0-1"}})",
                              R"({"expiration":5.0,"shrink":"1-2","nodelist":"n[1-2]"})",
                              R"({"property-remove":{"fast":"0"},"shrink":"1-2","nodelist":"n[1-2]"})"})
    CHECK_THROWS_WITH_AS(read(several), "context: has several changes of the inventory", Error);
}

TEST_CASE("a recorded drain without overwrite replaces the reason, as Flux reads it") {
  const auto overwrite = [](const char* name) {
    const auto event =
        decode_event({{"timestamp", 7}, {"name", name}, {"context", {{"idset", "1"}, {"nodelist", "n1"}}}});
    REQUIRE(event);
    if (const auto* drain = std::get_if<module::DrainEvent>(&event->body)) return drain->overwrite;
    return std::get<module::UndrainEvent>(event->body).overwrite;
  };
  CHECK(overwrite("drain") == module::Overwrite::reason);
  CHECK(overwrite("undrain") == module::Overwrite::nothing);
}

TEST_CASE("a forget without its hosts is refused") {
  for (const char* context : {"{}", R"({"nodelist":""})"}) {
    CAPTURE(context);
    CHECK_THROWS_WITH_AS(static_cast<void>(decode_event(
                             {{"timestamp", 1}, {"name", "forget"}, {"context", json::parse(context)}})),
                         "context.nodelist: names no host", Error);
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
