// Drains as an instance's KVS keeps them, in the forms that present and earlier versions of Flux's module
// write.
#include "daemon/instance/kept_state.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"

using namespace resourced;
using namespace resourced::daemon::instance;
using resourced::text::Hostlist;
using resourced::text::IdSet;

namespace {

const Brokers four(Hostlist::parse("a,b,c,d"), 4);

KeptState read(std::string_view log, std::string_view checkpoint = "", const Brokers& brokers = four,
               std::optional<WallTime> horizon = std::nullopt) {
  return read_kept_state(log, checkpoint, brokers, horizon);
}

std::string drains(const KeptState& kept) {
  std::string text;
  for (const auto& drain : kept.drains) {
    text += fmt::format("{}@{}:{};", drain.ranks.encode(), to_number(drain.timestamp),
                        drain.reason.value_or("-"));
  }
  return text;
}

std::string fault(std::string_view log, std::string_view checkpoint = "") {
  try {
    (void)read(log, checkpoint);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

constexpr const char* drain_b =
    R"({"timestamp":10.0,"name":"drain","context":{"idset":"1","nodelist":"b","reason":"disk","overwrite":0}})"
    "\n";
constexpr const char* undrain_b =
    R"({"timestamp":20.0,"name":"undrain","context":{"idset":"1","nodelist":"b"}})"
    "\n";

TEST_CASE("an instance without a past") {
  const KeptState kept = read("");
  CHECK(kept.history.empty());
  CHECK(kept.drains.empty());
  CHECK_FALSE(kept.rewritten);
}

TEST_CASE("drains follow the events of the log, and its lines are the history of the journal") {
  CHECK(drains(read(drain_b)) == "1@10:disk;");
  CHECK(drains(read(std::string(drain_b) + undrain_b)) == "");
  const KeptState kept =
      read(std::string(R"({"timestamp":1.0,"name":"resource-define","context":{"method":"configuration"}})") +
           "\n" + drain_b);
  REQUIRE(kept.history.size() == 1);
  CHECK(kept.history.front().ranks == IdSet{1});
  CHECK(kept.history.front().timestamp == wall_time(10));
  CHECK(kept.history.front().text.find(R"("reason":"disk")") != std::string::npos);
}

TEST_CASE("a later drain overwrites the reason as its event says, and by default") {
  const auto again = [](const char* overwrite) {
    return std::string(drain_b) +
           R"({"timestamp":11.0,"name":"drain","context":{"idset":"1","nodelist":"b","reason":"fan")" +
           overwrite + "}}\n";
  };
  CHECK(drains(read(again(R"(,"overwrite":0)"))) == "1@10:disk;");
  CHECK(drains(read(again(R"(,"overwrite":1)"))) == "1@10:fan;");
  CHECK(drains(read(again(R"(,"overwrite":2)"))) == "1@11:fan;");
  CHECK(drains(read(again(""))) == "1@10:fan;");
}

TEST_CASE("a recorded rank is found again by its host") {
  const Brokers turned(Hostlist::parse("d,c,b,a"), 4);
  CHECK(drains(read(drain_b, "", turned)) == "2@10:disk;");
  const Brokers without(Hostlist::parse("a,c,d"), 3);
  CHECK(drains(read(drain_b, "", without)) == "");
  // Several ranks on one host keep their drains.
  const Brokers one_host(Hostlist::parse("vm,vm,vm"), 3);
  CHECK(drains(read(R"({"timestamp":1.5,"name":"drain","context":{"idset":"1-2","nodelist":"vm,vm"}})"
                    "\n",
                    "", one_host)) == "1-2@1.5:-;");
  // A rank above those of the brokers, which only R has, is found by its host.
  CHECK(drains(read(R"({"timestamp":1.5,"name":"drain","context":{"idset":"5","nodelist":"a"}})"
                    "\n")) == "0@1.5:-;");
}

TEST_CASE("the checkpoint takes the place of the events before it") {
  constexpr const char* checkpoint =
      R"({"timestamp":15.0,"drain_state":{"2-3":{"timestamp":12.0,"reason":"","nodelist":"c,d"}}})";
  CHECK(drains(read(drain_b, checkpoint)) == "2-3@12:-;");
  CHECK(drains(read(std::string(drain_b) + undrain_b, checkpoint)) == "2-3@12:-;");
  // The journal lists the drains whose events are gone.
  const KeptState kept = read("", checkpoint);
  REQUIRE(kept.history.size() == 1);
  CHECK(kept.history.front().text.find(R"("idset":"2-3")") != std::string::npos);
}

TEST_CASE("events that are both older than the history and than the checkpoint leave the log") {
  constexpr const char* checkpoint = R"({"timestamp":15.0,"drain_state":{}})";
  const std::string log = std::string(drain_b) + undrain_b;
  CHECK_FALSE(read(log, checkpoint).rewritten);
  CHECK_FALSE(read(log, checkpoint, four, wall_time(5)).rewritten);
  const KeptState kept = read(log, checkpoint, four, wall_time(30));
  REQUIRE(kept.rewritten);
  CHECK(kept.rewritten->find("undrain") != std::string::npos);
  CHECK(kept.rewritten->find("disk") == std::string::npos);
  // Without a checkpoint the log is the only record of the drains, so it keeps them.
  CHECK_FALSE(read(log, "", four, wall_time(30)).rewritten);
}

TEST_CASE("a log of before Flux 0.62 is upgraded") {
  const KeptState kept = read(
      R"({"timestamp":1.0,"name":"drain","context":{"idset":"0","nodelist":"a"}})"
      "\n"
      R"({"timestamp":2.0,"name":"resource-init","context":{"drain":{"1":{"timestamp":1.5,"reason":"old"},"9":{"timestamp":1.6,"reason":""}}}})"
      "\n"
      R"({"timestamp":3.0,"name":"drain","context":{"idset":"3","reason":"new"}})"
      "\n"
      R"({"timestamp":3.5,"name":"undrain","context":{}})"
      "\n"
      R"({"timestamp":4.0,"name":"online","context":{"idset":"0"}})"
      "\n");
  CHECK(drains(kept) == "1@1.5:old;3@3:new;");
  REQUIRE(kept.rewritten);
  CHECK(kept.rewritten->find("resource-init") == std::string::npos);
  CHECK(kept.rewritten->find(R"("nodelist":"d")") != std::string::npos);
  REQUIRE(kept.upgraded);
  CHECK(kept.upgraded->before == 5);
  CHECK(kept.upgraded->after == 2);
  REQUIRE(kept.warnings.size() == 2);
  CHECK(kept.warnings[0] == "dropping old drain data with invalid ranks (ranks=9)");
  CHECK(kept.warnings[1] == "dropping old undrain event with invalid context");
}

TEST_CASE("what cannot be read refuses the start, with its line") {
  CHECK(fault("{\n") == "resource.eventlog: decode error");
  CHECK(fault(R"({"timestamp":"x","name":"drain"})") == "resource.eventlog: decode error");
  CHECK(fault(R"({"timestamp":1.0,"name":7})") == "resource.eventlog: decode error");
  CHECK(fault(std::string(drain_b) + R"({"timestamp":11.0,"name":"drain","context":{"idset":"1"}})") ==
        "resource.eventlog: line 2: drain parse error");
  CHECK(fault(R"({"timestamp":11.0,"name":"undrain","context":{"idset":5,"nodelist":"b"}})") ==
        "resource.eventlog: line 1: undrain parse error");
  CHECK(fault(R"({"timestamp":11.0,"name":"undrain"})") == "resource.eventlog: line 1: undrain parse error");
  CHECK(fault("", "[]") == "checkpoint.resource: not a JSON object");
  CHECK(fault("", "{}").starts_with("checkpoint.resource: "));
}

TEST_CASE("the method of the last definition") {
  CHECK_FALSE(last_definition(""));
  CHECK_FALSE(last_definition(drain_b));
  const std::string log =
      std::string(R"({"timestamp":1.0,"name":"resource-define","context":{"method":"configuration"}})") +
      "\n" + R"({"timestamp":2.0,"name":"resource-define","context":{"method":"reload"}})" + "\n" + drain_b;
  CHECK(last_definition(log) == module::DefineMethod::reload);
  CHECK_FALSE(last_definition(R"({"timestamp":2.0,"name":"resource-define","context":{"method":"other"}})"));
  CHECK_FALSE(last_definition(R"({"name":"resource-define")"));
}

TEST_CASE("the checkpoint has all times as reals, and reads as it was written") {
  module::DrainTable table;
  (void)table.drain(IdSet{1}, {{"disk"}, wall_time(12)}, module::Overwrite::nothing);
  (void)table.drain(IdSet{0, 3}, {{}, wall_time(13)}, module::Overwrite::nothing);
  const rset::ResourceSet targets({{IdSet::parse("0-3"), IdSet{0}, {}}}, Hostlist::parse("a,b,c,d"));
  const std::string text = encode_checkpoint(wall_time(20), table, targets);
  CHECK(text.find(R"("timestamp":20.0)") != std::string::npos);
  CHECK(text.find(R"("timestamp":12.0)") != std::string::npos);
  CHECK(drains(read("", text)) == "1@12:disk;0,3@13:-;");
}

}  // namespace
