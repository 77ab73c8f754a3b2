// Marks of streams: the state that a process needs to continue them.
#include "daemon/instance/positions.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/journal.hpp"

using namespace resourced;
using namespace resourced::daemon::instance;
using daemon::streams::JournalPosition;
using daemon::streams::SchedulerPosition;
using proto::ClientId;
using text::IdSet;

namespace {

constexpr ClientId client{4};

proto::Message response(const char* topic, std::string payload) {
  const proto::Message request = proto::make_request(topic, 7, nullptr, proto::flag::streaming);
  return proto::make_response(request, proto::make_payload(std::move(payload)));
}

Positions::Resources eight() { return {IdSet::parse("0-7"), wall_time(90)}; }

SchedulerPosition scheduler(const std::string& mark) {
  return std::get<SchedulerPosition>(parse_position(mark));
}
JournalPosition journal(const std::string& mark) { return std::get<JournalPosition>(parse_position(mark)); }

std::string batch(std::initializer_list<std::pair<double, const char*>> events) {
  std::vector<std::string> lines;
  for (const auto& [time, name] : events)
    lines.push_back(fmt::format(R"({{"timestamp":{:.1f},"name":"{}","context":{{}}}})", time, name));
  const std::vector<std::string_view> views(lines.begin(), lines.end());
  return proto::topics::encode_journal_batch(views, {}, 7);
}

TEST_CASE("the position of a scheduler follows what it is told") {
  Positions positions(false);
  std::string mark = positions.after(
      client, response("resource.acquire", proto::topics::encode_acquired("{}", IdSet::parse("0-3"))), eight);
  CHECK(scheduler(mark).resources.encode() == "0-7");
  CHECK(scheduler(mark).up.encode() == "0-3");
  CHECK(scheduler(mark).expiration == wall_time(90));
  mark = positions.after(client, response("resource.acquire", R"({"up":"4","down":"0-1"})"), eight);
  CHECK(scheduler(mark).up.encode() == "2-4");
  mark = positions.after(
      client, response("resource.acquire", R"({"down":"2","shrink":"2","expiration":95.0})"), eight);
  CHECK(scheduler(mark).resources.encode() == "0-1,3-7");
  CHECK(scheduler(mark).up.encode() == "3-4");
  CHECK(scheduler(mark).expiration == wall_time(95));
}

TEST_CASE("the position of a scheduler has the properties that it was told") {
  Positions positions(false);
  const auto resources = [] {
    return Positions::Resources{IdSet::parse("0-7"), {}, {{{"a", IdSet::parse("0-1")}}, {{"b", IdSet{2}}}}};
  };
  (void)positions.after(client, response("resource.acquire", proto::topics::encode_acquired("{}", IdSet{0})),
                        resources);
  const auto position = scheduler(
      positions.after(client,
                      response("resource.acquire",
                               R"({"property-add":{"b":"2-3","c":"4"},"property-remove":{"a":"1","d":"5"}})"),
                      resources));
  using Properties = rset::ResourceSet::Properties;
  CHECK(position.properties.added == Properties{{"a", IdSet{0}}, {"b", IdSet{3}}, {"c", IdSet{4}}});
  CHECK(position.properties.removed == Properties{{"d", IdSet{5}}});
}

TEST_CASE("a mute changes the positions of the schedulers that have resources") {
  Positions positions(false);
  CHECK(positions.mute().empty());
  const std::string mark = positions.after(
      client, response("resource.acquire", proto::topics::encode_acquired("{}", IdSet{0})), eight);
  CHECK_FALSE(scheduler(mark).muted);
  (void)positions.after(
      client,
      proto::make_response(proto::make_request("resource.journal", 8, nullptr, proto::flag::streaming),
                           proto::make_payload(R"({"events":[]})")),
      eight);
  const auto marks = positions.mute();
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].first == proto::RequestKey{client, 7});
  CHECK(scheduler(marks[0].second).muted);
  CHECK(scheduler(marks[0].second).up == IdSet{0});
  // A change that was sent before the mute follows it.
  CHECK(scheduler(positions.after(client, response("resource.acquire", R"({"down":"0"})"), eight)).muted);
}

TEST_CASE("a stream that was taken up goes on, and one that has ended is forgotten") {
  Positions positions(false);
  positions.begin({client, 7}, SchedulerPosition{IdSet::parse("0-1"), IdSet{0}, {}});
  const std::string mark = positions.after(client, response("resource.acquire", R"({"up":"1"})"), eight);
  CHECK(scheduler(mark).up.encode() == "0-1");
  CHECK(scheduler(mark).resources.encode() == "0-1");
  const proto::Message request = proto::make_request("resource.acquire", 7, nullptr, proto::flag::streaming);
  CHECK(positions.after(client, proto::make_error(request, ENODATA), eight).empty());
  // Another acquire with the same matchtag.
  CHECK(scheduler(
            positions.after(
                client, response("resource.acquire", proto::topics::encode_acquired("{}", IdSet{5})), eight))
            .up.encode() == "5");
  positions.forget(client);
  CHECK(scheduler(
            positions.after(
                client, response("resource.acquire", proto::topics::encode_acquired("{}", IdSet{6})), eight))
            .up.encode() == "6");
}

TEST_CASE("the position of a journal counts the events that the log keeps, by their timestamps") {
  Positions positions(false);
  const auto after = [&](std::string payload) {
    return journal(positions.after(client, response("resource.journal", std::move(payload)), eight));
  };
  JournalPosition at = after(batch({{1, "restart"}, {2, "resource-define"}, {3, "online"}}));
  CHECK(at.last == WallTime{});
  CHECK(at.at_last == 0);
  CHECK_FALSE(at.live);
  at = after(batch({}));
  CHECK(at.live);
  at = after(batch({{4, "drain"}, {5, "drain"}, {5, "online"}, {5, "undrain"}}));
  CHECK(at.last == wall_time(5));
  CHECK(at.at_last == 2);
  // Another event with the same timestamp.
  at = after(batch({{5, "resource-update"}}));
  CHECK(at.at_last == 3);
  at = after(batch({{6, "drain"}}));
  CHECK(at.last == wall_time(6));
  CHECK(at.at_last == 1);
  CHECK(at.live);
}

TEST_CASE("other responses have no mark") {
  Positions positions(false);
  CHECK(positions.after(client, response("resource.status", "{}"), eight).empty());
  const proto::Message once = proto::make_request("resource.acquire", 7);
  CHECK(positions.after(client, proto::make_response(once, proto::make_payload("{}")), eight).empty());
}

TEST_CASE("an invalid mark is refused") {
  for (const char* mark : {"", "{}", "[]", R"({"up":"0"})", R"({"up":7,"resources":"0","expiration":0})"}) {
    CAPTURE(mark);
    CHECK_THROWS_AS((void)parse_position(mark), Error);
  }
}

}  // namespace
