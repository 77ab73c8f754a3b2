// Members of an etcd that was restored from an older backup, or whose keys were copied without their leases.
#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "core/cluster/roster.hpp"
#include "seat.hpp"

namespace resourced::cluster::test {
namespace {

constexpr const char* of_copy = R"({"name":"b","uri":"tcp://b","process":"former"})";

struct Restored : World {
  void copy(const std::string& key, const std::string& value) {
    (void)etcd.carry_out(Transaction{{}, {Put{key, value}}, {}}, now);
  }
  void run_all(const std::vector<Seat*>& seats, Seconds time) {
    constexpr Seconds step{0.05};
    for (Seconds gone{}; gone < time; gone += step * static_cast<double>(seats.size())) {
      for (Seat* seat : seats) seat->run(now, step);
    }
  }
};

}  // namespace

TEST_SUITE_BEGIN("restored cluster");

TEST_CASE_FIXTURE(Restored,
                  "members take over from keys that were copied without a lease, and name the key") {
  copy("id", "this");
  copy("leader", of_copy);
  for (const char* name : {"a", "b"})
    copy(std::string("members/") + name, R"({"uri":"tcp://x","applied":7,"process":"former"})");
  CHECK(read_roster(std::get<TransactionDone>(etcd.carry_out(ask_roster(), now))).members.empty());
  Seat first(etcd, settings_of("a"));
  Seat second(etcd, settings_of("b"));
  run_all({&first, &second}, Seconds(20));
  CHECK_FALSE(first.failed);
  CHECK_FALSE(second.failed);
  CHECK(first.member.leads());
  CHECK(first.warning.value_or("").find("without a lease") != std::string::npos);
  CHECK(first.warning.value_or("").find(of_copy) != std::string::npos);
  CHECK(read_roster(std::get<TransactionDone>(etcd.carry_out(ask_roster(), now))).members.size() == 2);
}

TEST_CASE_FIXTURE(Restored, "members take over from keys whose lease is gone") {
  put("id", "this");
  put("leader", of_copy);
  put("members/b", R"({"uri":"tcp://x","applied":7,"process":"former"})");
  etcd.forget_leases();
  Seat second(etcd, settings_of("b"));
  second.run(now, Seconds(20));
  CHECK_FALSE(second.failed);
  CHECK(second.member.leads());
}

TEST_CASE_FIXTURE(Restored, "only the copied key of a leader is deleted, and no later one in its place") {
  copy("id", "this");
  copy("leader", of_copy);
  Seat first(etcd, settings_of("a"));
  Seat second(etcd, settings_of("b"));
  run_all({&first, &second}, Seconds(20));
  CHECK(first.member.leads() != second.member.leads());
  CHECK_FALSE(first.ended);
  CHECK_FALSE(second.ended);
}

TEST_CASE_FIXTURE(Restored, "a late answer that a lease is gone is not taken for one about a later lease") {
  put("id", "this");
  put("leader", of_copy);
  etcd.forget_leases();
  Member standby(settings_of("b"), {});
  std::deque<std::pair<RequestId, Request>> requests;
  std::optional<std::pair<RequestId, Request>> question;
  const auto take = [&](Effects effects) {
    for (auto& request : effects.requests) requests.push_back(std::move(request));
  };
  // Runs the standby, and leaves its first question for a lease without an answer.
  const auto run = [&](Seconds time) {
    const BootTime end = now + time;
    take(standby.tick(now));
    while (true) {
      while (!requests.empty()) {
        auto request = std::move(requests.front());
        requests.pop_front();
        if (!question && std::holds_alternative<FindLease>(request.second))
          question = std::move(request);
        else
          take(standby.answer(request.first, etcd.carry_out(request.second, now), now));
      }
      const auto next = standby.next_deadline();
      if (!next || *next > end) break;
      now = std::max(now, *next);
      take(standby.tick(now));
    }
    now = end;
  };
  run(Seconds(0.5));
  REQUIRE(question);
  (void)etcd.carry_out(Transaction{{}, {Delete{"leader", std::string("leader") + '\0'}}, {}}, now);
  Seat leader(etcd, settings_of("a"));
  const auto run_both = [&](int times) {
    for (int i = 0; i < times; ++i) {
      leader.run(now, Seconds(0.25));
      run(Seconds(0.25));
    }
  };
  leader.run(now, Seconds(1));
  REQUIRE(leader.member.leads());
  run_both(40);
  take(standby.answer(question->first, etcd.carry_out(question->second, now), now));
  run_both(8);
  CHECK(leader.member.leads());
  CHECK_FALSE(leader.ended);
  CHECK_FALSE(standby.leads());
}

TEST_CASE_FIXTURE(Restored, "while the store of a member has more events than the log, no member leads") {
  copy("id", "this");
  copy("head", "5");
  Seat behind(etcd, settings_of("a"), {"this", 5});
  Seat ahead(etcd, settings_of("b"), {"this", 9});
  behind.run(now, Seconds(1));
  REQUIRE(behind.member.leads());
  ahead.run(now, Seconds(0.1));
  CHECK(ahead.failed.value().errnum() == ESTALE);
  // The leader finds it before a change is answered.
  behind.take(behind.member.commit({6, 6, "event\n"}, now));
  behind.run(now, Seconds(0));
  CHECK(behind.committed == 0);
  CHECK(behind.ended.value_or("").find("the store of another member has more events") == 0);

  Seat again(etcd, settings_of("a"), {"this", 5});
  run_all({&again}, Seconds(30));
  CHECK_FALSE(again.member.leads());
  CHECK_FALSE(again.failed);
  CHECK(again.member.obstacle().find("the store of b has events up to 9, and the log in etcd, which was "
                                     "restored from an older backup, up to 5") != std::string::npos);
  // A leader without changes finds it, too, and the store with most events is named.
  Seat most(etcd, settings_of("c"), {"this", 11});
  most.run(now, Seconds(0.1));
  run_all({&again}, Seconds(2));
  CHECK(again.member.obstacle().find("the store of c has events up to 11") != std::string::npos);
  (void)etcd.carry_out(Transaction{{}, {Delete{"ahead", "ahead0"}}, {}}, now);
  run_all({&again}, Seconds(2));
  REQUIRE(again.member.leads());
  Seat late(etcd, settings_of("c"), {"this", 11});
  late.run(now, Seconds(0.1));
  run_all({&again}, Seconds(3));
  CHECK(again.ended.value_or("").find("the store of another member has more events") == 0);
}

TEST_SUITE_END();

}  // namespace resourced::cluster::test
