// Records as lines: a store that gets them back holds the same state as the store of the leader.
#include "daemon/log/etcd/record_json.hpp"

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using log::Record;
using module::TargetNames;

TargetNames names(const std::string& hosts, std::vector<std::uint32_t> ordinals = {}) {
  return {text::Hostlist::parse(hosts), std::move(ordinals)};
}

Record full_record() {
  Record record;
  record.sequence = 7;
  record.timestamp = wall_time(1700000000.25);
  record.name = "drain";
  record.text = R"({"timestamp":1700000000.25,"name":"drain","context":{"reason":"a \"b\" é"}})";
  record.hosts = text::Hostlist::parse("n[0-2]");
  record.resources = std::make_shared<const std::string>("{R}");
  record.hidden = true;
  record.of_ledger = true;
  record.by = module::ByUser{12};
  log::TableChanges& changes = record.changes;
  changes.drained.push_back(
      {names("n[0-1]", {0, 1}), wall_time(1), "why", module::Actor(module::ByHost{"n0"}), wall_time(2.5)});
  changes.drained.push_back({names("n2"), wall_time(3), std::nullopt});
  changes.undrained = names("n3");
  changes.scheduled.push_back({names("n4"), wall_time(4), ""});
  changes.unscheduled = names("n5");
  using Difference = module::PropertyState::Difference;
  changes.properties.push_back({"p", names("n6"), Difference::added});
  changes.properties.push_back({"q", names("n7"), Difference::removed});
  changes.properties.push_back({"r", names("n8"), Difference::same});
  changes.allocated.push_back(
      {"id1", std::make_shared<const std::string>("{A}"), {1, 2}, wall_time(9), "note", "batch"});
  changes.allocated.push_back({"id2", std::make_shared<const std::string>("{B}"), {}, {}, {}, ""});
  changes.freed = {"id3", "id4"};
  changes.shrunk = names("n9");
  changes.unshrunk = names("n10");
  changes.expiration = {wall_time(10), wall_time(11), wall_time(12)};
  changes.inventory = {module::DefineMethod::reload, "{C}", "{D}"};
  changes.brokers = text::Hostlist::parse("b[0-3]");
  changes.forget_allocations = changes.forget_properties = changes.forget_drains = true;
  changes.forget_scheduled = changes.forget_shrunk = changes.forget_loaded = true;
  return record;
}

void check_same(const TargetNames& a, const TargetNames& b) {
  CHECK(a.hosts.encode() == b.hosts.encode());
  CHECK(a.ordinals == b.ordinals);
}

void check_same(const std::vector<log::TableChanges::Drained>& a,
                const std::vector<log::TableChanges::Drained>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    check_same(a[i].targets, b[i].targets);
    CHECK(a[i].timestamp == b[i].timestamp);
    CHECK(a[i].reason == b[i].reason);
    CHECK(a[i].by == b[i].by);
    CHECK(a[i].until == b[i].until);
  }
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
  CHECK(*back.resources == *record.resources);
  CHECK(back.hidden);
  CHECK(back.of_ledger);
  CHECK(back.by == record.by);
  const log::TableChanges& a = record.changes;
  const log::TableChanges& b = back.changes;
  check_same(a.drained, b.drained);
  check_same(a.scheduled, b.scheduled);
  check_same(a.undrained, b.undrained);
  check_same(a.unscheduled, b.unscheduled);
  check_same(a.shrunk, b.shrunk);
  check_same(a.unshrunk, b.unshrunk);
  REQUIRE(b.properties.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(a.properties[i].name == b.properties[i].name);
    CHECK(a.properties[i].difference == b.properties[i].difference);
    check_same(a.properties[i].targets, b.properties[i].targets);
  }
  REQUIRE(b.allocated.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(a.allocated[i].id == b.allocated[i].id);
    CHECK(*a.allocated[i].resources == *b.allocated[i].resources);
    CHECK(a.allocated[i].ordinals == b.allocated[i].ordinals);
    CHECK(a.allocated[i].expiration == b.allocated[i].expiration);
    CHECK(a.allocated[i].note == b.allocated[i].note);
    CHECK(a.allocated[i].partition == b.allocated[i].partition);
  }
  CHECK(a.freed == b.freed);
  CHECK(b.expiration->value == wall_time(10));
  CHECK(b.expiration->configured == wall_time(11));
  CHECK(b.expiration->timestamp == wall_time(12));
  CHECK(b.inventory->method == module::DefineMethod::reload);
  CHECK(b.inventory->text == "{C}");
  CHECK(b.inventory->replaced == "{D}");
  CHECK(b.brokers->encode() == "b[0-3]");
  CHECK(b.forget_allocations);
  CHECK(b.forget_properties);
  CHECK(b.forget_drains);
  CHECK(b.forget_scheduled);
  CHECK(b.forget_shrunk);
  CHECK(b.forget_loaded);
}

TEST_CASE("an empty record stays empty") {
  Record record;
  record.sequence = 1;
  record.name = "online";
  record.text = "{}";
  const Record back = decode_records(encode_record(record), 1, 1).at(0);
  CHECK_FALSE(back.resources);
  CHECK_FALSE(back.by);
  CHECK_FALSE(back.changes.expiration);
  CHECK_FALSE(back.changes.inventory);
  CHECK_FALSE(back.changes.brokers);
  CHECK_FALSE(back.changes.forget_drains);
  CHECK(back.changes.drained.empty());
  CHECK_FALSE(back.snapshot);
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
  // No byte of it can be cut off unnoticed but the end of the line.
  for (std::size_t size = 0; size + 1 < line.size(); ++size) CHECK(refusal(line.substr(0, size), 7, 7) != "");
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
