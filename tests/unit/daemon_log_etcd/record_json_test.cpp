// Records as lines: a store that gets them back holds the same state as the store of the leader.
#include "daemon/log/etcd/record_json.hpp"

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "os/sha256.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using log::Record;

Record full_record() {
  Record record;
  record.sequence = 7;
  record.timestamp = wall_time(1700000000.25);
  record.name = "drain";
  record.text = R"({"timestamp":1700000000.25,"name":"drain","context":{"reason":"a \"b\" é"}})";
  record.rest = R"({"lost":true})";
  record.hosts = text::Hostlist::parse("n[0-2]");
  for (const std::string text : {"{C}", "{R}"})
    record.documents.emplace(os::sha256(text), std::make_shared<const std::string>(text));
  record.resources = std::make_shared<const std::string>("{R}");
  record.audience = log::Audience::nobody;
  record.by = module::ByUser{12};
  return record;
}

std::string refusal(const std::string& text, log::Sequence first, log::Sequence last) {
  try {
    (void)decode_records(text, first, last);
    return "";
  } catch (const Error& error) {
    CHECK(error.errnum() == EBADMSG);
    return error.what();
  }
}

}  // namespace

TEST_SUITE_BEGIN("records in etcd");

TEST_CASE("a record comes back with all that the store writes") {
  const Record record = full_record();
  const std::vector<Record> read = decode_records(encode_record(record), 7, 7);
  REQUIRE(read.size() == 1);
  const Record& back = read[0];
  CHECK(back.sequence == record.sequence);
  CHECK(back.timestamp == record.timestamp);
  CHECK(back.name == record.name);
  CHECK(back.text == record.text);
  CHECK(back.hosts.encode() == record.hosts.encode());
  CHECK(back.rest == record.rest);
  REQUIRE(back.documents.size() == 2);
  for (const auto& [name, text] : record.documents) CHECK(*back.documents.at(name) == *text);
  CHECK(*back.resources == *record.resources);
  CHECK(back.audience == log::Audience::nobody);
  CHECK(back.by == record.by);
  CHECK_FALSE(back.snapshot);
}

TEST_CASE("the audience of an event follows from its name") {
  for (const auto& [name, audience] :
       {std::pair("alloc", log::Audience::ledger), std::pair("evict", log::Audience::own),
        std::pair("drain", log::Audience::everyone)}) {
    CAPTURE(name);
    Record record = full_record();
    record.name = name;
    record.audience = audience;
    CHECK(decode_records(encode_record(record), 7, 7).at(0).audience == audience);
  }
}

TEST_CASE("a record comes back with the state after it, where it has one") {
  module::State state;
  state.defined = true;
  state.inventory = state.configured =
      rset::ResourceSet({{{0, 1}, {0}, {}}}, text::Hostlist::parse("n[0-1]"));
  state.targets.online = {1};
  Record record = full_record();
  record.snapshot = std::make_shared<const module::State>(state);
  const Record back = decode_records(encode_record(record), 7, 7).at(0);
  REQUIRE(back.snapshot);
  CHECK(back.snapshot->inventory == state.inventory);
  CHECK(back.snapshot->targets.online == state.targets.online);
}

TEST_CASE("a record without optional members has none when it comes back") {
  Record record;
  record.sequence = 1;
  record.name = "online";
  record.text = "{}";
  const Record back = decode_records(encode_record(record), 1, 1).at(0);
  CHECK_FALSE(back.resources);
  CHECK_FALSE(back.by);
  CHECK_FALSE(back.rest);
  CHECK_FALSE(back.snapshot);
  CHECK(back.documents.empty());
  CHECK(back.hosts.empty());
  // An event that is complete with its text is told from an imported one.
  record.rest = "";
  CHECK(decode_records(encode_record(record), 1, 1).at(0).rest == "");
}

TEST_CASE("lines that are not these records are refused by the number of their event") {
  const std::string line = encode_record(full_record());
  CHECK(refusal(line, 7, 7) == "");
  CHECK(refusal(line, 6, 6).find("event 6 in etcd is not readable: it has another number") == 0);
  CHECK(refusal(line, 7, 8).find("event 8 in etcd is not readable: it is missing") == 0);
  CHECK(refusal("nonsense\n", 7, 7).find("event 7 in etcd is not readable: it is not JSON") == 0);
  CHECK(refusal("{}\n", 7, 7).find("event 7 in etcd is not readable: ") == 0);
  CHECK(refusal("lz4 9\nabc", 7, 7) == "event 7 in etcd is not readable: it cannot be unpacked");
  CHECK(refusal("[]\n", 7, 7).find("event 7 in etcd is not readable: ") == 0);
  // The line names a document that it does not have.
  std::string without = line;
  without.replace(without.find("{R}"), 3, "{Q}");
  CHECK(refusal(without, 7, 7).find("event 7 in etcd is not readable: document ") == 0);
  // No byte of it can be cut off unnoticed but the end of the line.
  for (std::size_t size = 0; size + 1 < line.size(); ++size) CHECK(refusal(line.substr(0, size), 7, 7) != "");
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
