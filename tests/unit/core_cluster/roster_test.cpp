// The members that etcd lists, and the choice of a successor.
#include "core/cluster/roster.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "simulated_etcd.hpp"

namespace resourced::cluster::test {
namespace {

struct Keys {
  SimulatedEtcd etcd;
  void put(const std::string& key, const std::string& value) { etcd.put(key, value, BootTime{}); }
  Roster read() { return read_roster(std::get<TransactionDone>(etcd.carry_out(ask_roster(), BootTime{}))); }
};

Roster three() {
  Roster roster;
  for (const auto& [name, applied] :
       std::vector<std::pair<std::string, Sequence>>{{"a", 9}, {"b", 7}, {"c", 8}})
    roster.members.push_back({name, "tcp://" + name, "1.0", applied});
  return roster;
}

int refusal(const std::string& self, const std::optional<std::string>& name, const Roster& roster) {
  try {
    (void)choose_successor(roster, self, name);
  } catch (const Error& error) {
    return error.errnum();
  }
  return 0;
}

}  // namespace

TEST_SUITE_BEGIN("roster");

TEST_CASE_FIXTURE(Keys, "texts of another program are read without control characters") {
  put("leader", R"({"name":"b\nc","uri":"tcp://b\u001b[2J","process":"p"})");
  put("members/a\nb", R"({"uri":"\r","applied":11,"version":"\n"})");
  const Roster roster = read();
  REQUIRE(roster.leader);
  REQUIRE(roster.members.size() == 1);
  const Standing& member = roster.members.front();
  for (const std::string& text :
       {roster.leader->name, roster.leader->uri, member.name, member.uri, member.version}) {
    CAPTURE(text);
    CHECK(text.find_first_of("\n\r\x1b") == std::string::npos);
  }
}

TEST_CASE_FIXTURE(Keys, "a roster has the leader, the head and the members in the order of their names") {
  put("leader", R"({"name":"b","uri":"tcp://b","process":"p"})");
  put("head", "12");
  put("members/b", R"({"uri":"tcp://b","applied":12,"version":"2.0"})");
  put("members/a", R"({"uri":"tcp://a","applied":11})");
  const Roster roster = read();
  REQUIRE(roster.leader);
  CHECK(roster.leader->name == "b");
  CHECK(roster.leader->uri == "tcp://b");
  CHECK(roster.leader->epoch == etcd.keys().at("leader").created);
  CHECK(roster.head == 12);
  REQUIRE(roster.members.size() == 2);
  CHECK(roster.members[0].name == "a");
  CHECK(roster.members[0].version.empty());
  CHECK(roster.members[0].applied == 11);
  CHECK(roster.members[1].name == "b");
  CHECK(roster.members[1].uri == "tcp://b");
  CHECK(roster.members[1].version == "2.0");
}

TEST_CASE_FIXTURE(Keys, "an etcd without a cluster has no leader, head or members") {
  const Roster roster = read();
  CHECK_FALSE(roster.leader);
  CHECK(roster.head == 0);
  CHECK(roster.members.empty());
}

TEST_CASE_FIXTURE(Keys, "a value that no member has written is named") {
  for (const char* value : {"", "[]", "{}", R"({"uri":1,"applied":1})", R"({"uri":"u","applied":-1})",
                            R"({"uri":"u","applied":1,"version":2})"}) {
    CAPTURE(value);
    put("members/a", value);
    CHECK_THROWS_WITH_AS((void)read(), "members/a in etcd is not readable", Garbled);
  }
}

TEST_CASE_FIXTURE(Keys, "the files of the leader are those of the member that leads") {
  CHECK(leading_files(read()) == FileDigests{});
  put("members/a", R"({"uri":"tcp://a","applied":1,"files":{"inventory":"1","access":"2"}})");
  put("members/b", R"({"uri":"tcp://b","applied":1,"files":"none"})");
  put("members/c", R"({"uri":"tcp://c","applied":1})");
  const Roster roster = read();
  CHECK(leading_files(roster) == FileDigests{});
  CHECK(roster.members.at(0).files == FileDigests{"1", "", "", "", "2"});
  CHECK(roster.members.at(1).files == FileDigests{});
  CHECK(roster.members.at(2).files == FileDigests{});
  put("leader", R"({"name":"a","uri":"tcp://a","process":"p"})");
  CHECK(leading_files(read()) == FileDigests{"1", "", "", "", "2"});
  put("leader", R"({"name":"gone","uri":"tcp://a","process":"p"})");
  CHECK(leading_files(read()) == FileDigests{});
}

TEST_CASE("the member with the most events takes over, or the one that is named") {
  CHECK(choose_successor(three(), "a", std::nullopt).name == "c");
  CHECK(choose_successor(three(), "c", std::nullopt).name == "a");
  CHECK(choose_successor(three(), "a", "b").name == "b");
  CHECK(choose_successor(three(), "a", "b").uri == "tcp://b");
}

TEST_CASE("the leader is not its own successor, and neither is a member that is not connected") {
  CHECK(refusal("a", "a", three()) == EINVAL);
  CHECK(refusal("a", "d", three()) == ENOENT);
  Roster alone;
  alone.members.push_back({"a", "tcp://a", "1.0", 1});
  CHECK(refusal("a", std::nullopt, alone) == ENOENT);
}

TEST_SUITE_END();

}  // namespace resourced::cluster::test
