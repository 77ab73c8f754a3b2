// resource.journal: the request and the batches, encoded and decoded.
#include "proto/topics/journal.hpp"

#include <array>
#include <variant>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "payload_errors.hpp"
#include "proto/event_json.hpp"
#include "vector_files.hpp"

using namespace resourced::proto::topics;

namespace resourced::proto::test {
namespace {

using nlohmann::json;

TEST_CASE("a journal is asked for whole, since a time, and of targets") {
  const json frames = json::parse(resourced::test::read_vector("wire.json")).at("local_frames");
  CHECK(encode_journal({}) == frames.at(2).at("payload"));
  const JournalRequest all = parse_journal(frames.at(2).at("payload"));
  CHECK_FALSE(all.since);
  CHECK_FALSE(all.targets);
  const JournalRequest part = parse_journal(encode_journal({wall_time(1795297018.5), "node[1-2]"}));
  CHECK(part.since == wall_time(1795297018.5));
  CHECK(part.targets == "node[1-2]");
  CHECK_FALSE(part.after);
  JournalRequest later;
  later.after = std::uint64_t{1} << 63;
  CHECK(parse_journal(encode_journal(later)).after == later.after);
  CHECK(refusal(parse_journal, R"({"since": "1"})") == "71 since must be a number");
  CHECK(refusal(parse_journal, R"({"targets": 1})") == "71 targets must be a string");
}

TEST_CASE("a batch comes back with its events, and R beside a definition") {
  const std::string drain = encode_event(
      {wall_time(1795297018.5),
       module::DrainEvent{{"fan"}, text::IdSet::parse("1"), text::Hostlist::parse("node1"), {}}});
  const std::string define = R"({"timestamp":1.0,"name":"resource-define","context":{"method":"kvs"}})";
  const std::string resources =
      R"({"version":1,"execution":{"R_lite":[{"rank":"1","children":{"core":"0"}}],)"
      R"("starttime":0.0,"expiration":0.0,"nodelist":["node1"]}})";
  const std::array<std::string_view, 2> events{define, drain};
  const std::string text = encode_journal_batch(events, resources, 7);
  CHECK(text == R"({"events":[)" + define + "," + drain + R"(],"R":)" + resources + R"(,"last":7})");
  CHECK(find_journal_last(json::parse(text)) == 7);
  const JournalBatch batch = parse_journal_batch(json::parse(text));
  REQUIRE(batch.events.size() == 2);
  CHECK_FALSE(batch.sentinel);
  CHECK(std::get<module::DefineEvent>(batch.events[0].body).inventory->ranks().encode() == "1");
  CHECK(encode_event(batch.events[1]) == drain);
}

TEST_CASE("a batch without events ends the past, and truncate says that some of it is gone") {
  CHECK(encode_journal_batch({}, {}, 0) == R"({"events":[],"last":0})");
  CHECK(encode_journal_batch({}, {}, std::nullopt) == R"({"events":[]})");
  CHECK_FALSE(find_journal_last(json::parse(R"({"events":[]})")));
  CHECK(parse_journal_batch(json::parse(encode_journal_batch({}, {}, 7))).sentinel);
  CHECK(encode_truncation(wall_time(7), 3) == R"({"events":[{"timestamp":7.0,"name":"truncate"}],"last":3})");
  const JournalBatch batch = parse_journal_batch(json::parse(encode_truncation(wall_time(7), 3)));
  CHECK(batch.truncated);
  CHECK_FALSE(batch.sentinel);
  CHECK(batch.events.empty());
}

TEST_CASE("an event that cannot be read is passed over and counted, any other payload is refused") {
  const JournalBatch batch = parse_journal_batch(
      json::parse(R"({"events": [{"timestamp": 1, "name": "drain", "context": {}}, {"name": "other"}]})"));
  CHECK(batch.events.empty());
  CHECK(batch.unreadable >= 1);
  CHECK_FALSE(batch.defect.empty());
  CHECK(refusal(parse_journal_batch, "{}") == "71 missing key: events");
  CHECK(refusal(parse_journal_batch, R"({"events": {}})") == "71 events must be an array");
}

}  // namespace
}  // namespace resourced::proto::test
