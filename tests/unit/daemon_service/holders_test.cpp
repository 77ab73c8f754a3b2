// A leader keeps the holders of resources for its successor, which lets them acquire first.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using module::ByUser;
using module::PartitionHolder;
using Holders = std::vector<PartitionHolder>;

/// A leader with two partitions and other targets.
struct HoldersStand : Stand, private service::Leadership {
  [[nodiscard]] std::string name() const override { return "a"; }
  [[nodiscard]] proto::topics::Term term() const override { return {7, "cluster"}; }
  [[nodiscard]] bool may_serve() const override { return true; }
  void ask_roster(TakeRoster /*take*/) override {}
  void hand_over(const std::string& /*successor*/) override {}
  [[nodiscard]] std::optional<std::string> stalled() const override { return std::nullopt; }
  void keep_holders(const Holders& holders) override { kept.push_back(holders); }

  HoldersStand() {
    leadership = this;
    partitions.push_back({"batch", text::IdSet{0, 1}, {}});
    partitions.push_back({"night", text::IdSet{2, 3}, {}});
    restart();
  }
  /// Sends an acquire and returns the answer.
  proto::Message acquire(proto::ClientId client, const char* partition) {
    nlohmann::json payload = nlohmann::json::object();
    if (*partition != 0) payload["partition"] = partition;
    request(client, "resource.acquire", payload, streaming);
    settle();
    return receive(client);
  }

  std::vector<Holders> kept;
};

}  // namespace

TEST_SUITE_BEGIN("holders");

TEST_CASE_FIXTURE(HoldersStand, "each change of the holders is kept, and the end of the daemon is none") {
  const auto one = connect();
  const auto two = connect();
  CHECK(acquire(one, "batch").errnum() == 0);
  CHECK(kept.back() == Holders{{"batch", ByUser{0}}});
  CHECK(acquire(two, "").errnum() == 0);
  CHECK(kept.back() == Holders{{"batch", ByUser{0}}, {"", ByUser{0}}});
  const proto::Message busy = acquire(two, "batch");
  CHECK(busy.errnum() == EBUSY);
  CHECK(busy.text() ==
        "partition batch is acquired by another scheduler already: uid 0 since 1970-01-01T00:16:40Z");
  CHECK(kept.size() == 2);
  disconnect(one);
  CHECK(kept.back() == Holders{{"", ByUser{0}}});
  CHECK(kept.size() == 3);
  service->shut_down();
  CHECK(kept.size() == 3);
}

TEST_CASE_FIXTURE(HoldersStand,
                  "after a takeover others wait, and the reservations are kept until they are over") {
  former = {{"batch", ByUser{1000}}, {"night", ByUser{0}}, {"", module::ByKey{"login1"}}};
  restart();
  const auto client = connect();
  const proto::Message refused = acquire(client, "batch");
  CHECK(refused.errnum() == EBUSY);
  CHECK(refused.text() ==
        "partition batch is kept for its scheduler until 1970-01-01T00:16:50Z: uid 1000 held it before this "
        "daemon took over");
  CHECK(acquire(client, "").text() ==
        "the resources are kept for their scheduler until 1970-01-01T00:16:50Z: key login1 held them before "
        "this daemon took over");
  CHECK(acquire(client, "night").errnum() == 0);
  CHECK(kept.back() == Holders{{"", module::ByKey{"login1"}}, {"batch", ByUser{1000}}, {"night", ByUser{0}}});
  const auto other = connect();
  uptime += Seconds(4);
  now += 4;
  CHECK(std::string(acquire(other, "batch").text()).find("until 1970-01-01T00:16:50Z") != std::string::npos);
  catch_up();
  CHECK(uptime >= SteadyTime{} + module::Reservations::patience);
  CHECK(kept.back() == Holders{{"night", ByUser{0}}});
  CHECK(acquire(other, "batch").errnum() == 0);
}

TEST_CASE_FIXTURE(HoldersStand,
                  "an operator ends the hold of the scheduler that it names, and no other one") {
  const auto scheduler = connect();
  const auto next = connect();
  const auto admin = connect();
  CHECK(acquire(scheduler, "batch").errnum() == 0);
  CHECK(acquire(scheduler, "night").errnum() == 0);
  const nlohmann::json holders = nlohmann::json::parse(call(admin, "resource.peers").text())["holders"];
  const nlohmann::json since = holders[0]["since"];
  const auto evict = [&](const nlohmann::json& payload) {
    return call(admin, "resource.evict", payload).errnum();
  };
  CHECK(evict({{"partition", "batch"}}) == EPROTO);
  CHECK(evict({{"since", since}}) == ENOENT);
  CHECK(evict({{"partition", "gone"}, {"since", since}}) == ENOENT);
  CHECK(evict({{"partition", "batch"}, {"since", 1.0}}) == ESTALE);
  CHECK(evict({{"partition", "batch"}, {"since", since}, {"reason", std::string(1025, 'x')}}) == EINVAL);
  CHECK(silent(scheduler));
  CHECK(acquire(next, "batch").errnum() == EBUSY);

  CHECK(evict({{"partition", "batch"}, {"since", since}, {"reason", "it\nhangs"}}) == 0);
  const proto::Message end = receive(scheduler);
  CHECK(end.topic == "resource.acquire");
  CHECK(end.errnum() == ECONNABORTED);
  CHECK(end.text() == "evicted by uid 0: it hangs");
  CHECK(kept.back() == Holders{{"night", ByUser{0}}});
  now += 0.5;
  CHECK(acquire(next, "batch").errnum() == 0);
  CHECK(evict({{"partition", "batch"}, {"since", since}}) == ESTALE);
  CHECK(call(admin, "resource.drain", {{"targets", "2"}}).errnum() == 0);
  CHECK(receive_json(scheduler)["down"] == "2");
  CHECK(silent(scheduler));
  CHECK(silent(next));

  const auto evictions = [&](const nlohmann::json& payload) {
    request(admin, "resource.journal", payload, streaming);
    settle();
    auto events = nlohmann::json::array();
    while (!silent(admin)) {
      const nlohmann::json batch = receive_json(admin);
      for (const auto& event : batch["events"])
        if (event["name"] == "evict") events.push_back(event["context"]);
    }
    return events;
  };
  CHECK(evictions({{"allocations", true}}).empty());
  const nlohmann::json told = evictions({{"own", true}});
  REQUIRE(told.size() == 1);
  CHECK(told[0] == nlohmann::json{{"idset", "0-1"},
                                  {"nodelist", "n[0-1]"},
                                  {"partition", "batch"},
                                  {"holder", {{"userid", 0}}},
                                  {"since", since},
                                  {"reason", "it\nhangs"},
                                  {"by", {{"userid", 0}}}});
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test
