// resource.wait: answered by the change that makes its targets idle or ready.
#include <cerrno>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/builder.hpp"
#include "daemon/service/wait_topics.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;
using text::IdSet;

json wait_for(const std::string& condition, const std::string& targets) {
  return {{"for", condition}, {"targets", targets}};
}

json idle(const std::string& targets, const std::string& unreported = "refuse") {
  json payload = wait_for("idle", targets);
  if (unreported != "refuse") payload["unreported"] = unreported;
  return payload;
}

class WaitStand : public Stand {
 public:
  explicit WaitStand(std::optional<nodes::Settings> agents = std::nullopt)
      : Stand("n[0-7]", 100000, std::move(agents)) {}

  /// Connects a scheduler that acquires everything; with `reports` it keeps the ledger.
  proto::ClientId acquire(bool reports = true) {
    const proto::ClientId scheduler = connect();
    request(scheduler, "resource.acquire", reports ? json{{"allocations", true}} : json(), streaming);
    settle();
    CHECK(receive(scheduler).errnum() == 0);
    return scheduler;
  }
  void alloc(proto::ClientId scheduler, const std::string& id, const std::string& ranks) {
    const IdSet set = IdSet::parse(ranks);
    const rset::ResourceSet whole({{IdSet::range(0, 7), IdSet::range(0, 3), IdSet{}}},
                                  text::Hostlist::parse("n[0-7]"));
    const json payload{{"id", id}, {"R", json::parse(whole.copy_ranks(set).encode())}};
    CHECK(call(scheduler, "resource.alloc", payload).errnum() == 0);
  }
  void free(proto::ClientId scheduler, const std::string& id, const std::string& ranks = "") {
    json payload{{"id", id}};
    if (!ranks.empty()) payload["ranks"] = ranks;
    CHECK(call(scheduler, "resource.free", payload).errnum() == 0);
  }
  /// The errno and the text of an answer that has arrived; "" if there is none.
  std::string answer(proto::ClientId client) {
    // The loop looks at the waiting requests in a later turn.
    settle();
    if (silent(client)) return "";
    const proto::Message message = receive(client);
    return message.errnum() == 0 ? "done" : fmt::format("{} {}", message.errnum(), message.text());
  }
  std::string ask(proto::ClientId client, const json& payload) {
    request(client, "resource.wait", payload);
    return answer(client);
  }
  void join(const std::string& host) {
    say_hello(host);
    settle();
  }
  void say_hello(const std::string& host) {
    rset::InventoryBuilder builder;
    builder.add(text::Hostlist::parse(host), IdSet::range(0, 3), IdSet{}, {});
    request(connect(), "resource.agent", {{"hostname", host}, {"R", json::parse(builder.finish().encode())}},
            streaming);
    uptime += Seconds(1);
    service->on_time();
  }
};

TEST_CASE("wait: targets are idle when the last allocation is freed, and that is on disk") {
  WaitStand stand;
  const proto::ClientId scheduler = stand.acquire();
  const proto::ClientId client = stand.connect();
  stand.alloc(scheduler, "j1", "0-3");
  stand.alloc(scheduler, "j2", "4");
  CHECK(stand.ask(client, idle("5-7")) == "done");
  CHECK(stand.ask(client, idle("2,4-5")).empty());
  stand.free(scheduler, "j1", "0-1");
  CHECK(stand.answer(client).empty());
  stand.free(scheduler, "j2");
  CHECK(stand.answer(client).empty());
  stand.request(scheduler, "resource.free", {{"id", "j1"}});
  CHECK(stand.silent(client));
  CHECK(stand.answer(client) == "done");
  // Targets can be named by host.
  CHECK(stand.ask(client, idle("n[0-7]")) == "done");
}

TEST_CASE("wait: nobody reports what runs on a target") {
  WaitStand stand;
  const proto::ClientId client = stand.connect();
  CHECK(stand.ask(client, idle("0-1")) == "113 nobody reports what runs on n[0-1]");
  CHECK(stand.ask(client, idle("0-1", "idle")) == "done");
  CHECK(stand.ask(client, wait_for("reported", "0-1")) == "113 nobody reports what runs on n[0-1]");
  const proto::ClientId silent_one = stand.acquire(false);
  CHECK(stand.ask(client, idle("n7")) == "113 nobody reports what runs on n7");
  stand.disconnect(silent_one);
  // A client that has waited before a restart waits until somebody reports again.
  CHECK(stand.ask(client, idle("0-1", "wait")).empty());
  const proto::ClientId scheduler = stand.acquire();
  CHECK(stand.answer(client) == "done");
  CHECK(stand.ask(client, wait_for("reported", "n[0-7]")) == "done");
  // Allocations outlive their scheduler. Once they are freed, the next scheduler must report that all is
  // idle.
  stand.alloc(scheduler, "j1", "0");
  CHECK(stand.ask(client, idle("0")).empty());
  stand.disconnect(scheduler);
  CHECK(stand.answer(client).empty());
  CHECK(stand.call(stand.connect(), "resource.force-free", {{"id", "j1"}}).errnum() == 0);
  CHECK(stand.answer(client).empty());
  stand.acquire();
  CHECK(stand.answer(client) == "done");
}

TEST_CASE("wait: the ledger counts where unreported targets are assumed idle") {
  WaitStand stand;
  const proto::ClientId scheduler = stand.acquire();
  const proto::ClientId client = stand.connect();
  stand.alloc(scheduler, "j1", "0");
  stand.disconnect(scheduler);
  CHECK(stand.ask(client, idle("0-1", "idle")).empty());
  CHECK(stand.call(stand.connect(), "resource.force-free", {{"id", "j1"}}).errnum() == 0);
  CHECK(stand.answer(client) == "done");
}

TEST_CASE("wait: targets are ready when all of them are online") {
  WaitStand stand{nodes::Settings{}};
  const proto::ClientId client = stand.connect();
  CHECK(stand.ask(client, wait_for("ready", "n[1-2]")).empty());
  stand.join("n1");
  stand.join("n3");
  CHECK(stand.answer(client).empty());
  stand.join("n2");
  CHECK(stand.answer(client) == "done");
  // A target that has left the inventory is never ready, and idle once it is freed.
  CHECK(stand.ask(client, wait_for("ready", "n[6-7]")).empty());
  const proto::ClientId scheduler = stand.acquire();
  stand.alloc(scheduler, "j1", "7");
  const proto::ClientId other = stand.connect();
  CHECK(stand.ask(other, idle("7")).empty());
  CHECK(stand.call(stand.connect(), "resource.shrink", {{"targets", "n7"}}).errnum() == 0);
  CHECK(stand.answer(client) == "2 rank 7 has left the inventory");
  CHECK(stand.answer(other).empty());
  CHECK(stand.call(stand.connect(), "resource.force-free", {{"id", "j1"}}).errnum() == 0);
  CHECK(stand.answer(other) == "done");
}

TEST_CASE("wait: another inventory ends the requests that wait for the present one, and no later ones") {
  WaitStand stand{nodes::Settings{}};
  const proto::ClientId client = stand.connect();
  for (int i = 0; i < 3; ++i) CHECK(stand.ask(client, wait_for("ready", "n0")).empty());
  rset::InventoryBuilder builder;
  builder.add(text::Hostlist::parse("n[1-2]"), IdSet::range(0, 3), IdSet{}, {});
  const std::string path = stand.dir.file("R");
  std::ofstream(path) << builder.finish().encode();
  CHECK(stand.call(stand.connect(), "resource.reload", {{"path", path}}).errnum() == 0);
  const proto::ClientId late = stand.connect();
  CHECK(stand.ask(late, wait_for("ready", "n1")).empty());
  for (int i = 0; i < 3; ++i) CHECK(stand.answer(client) == "11 the inventory was replaced: wait again");
  stand.join("n1");
  CHECK(stand.answer(late) == "done");
}

TEST_CASE("wait: a reload of the configuration, which keeps the ranks, ends no request") {
  WaitStand stand{nodes::Settings{}};
  const proto::ClientId client = stand.connect();
  CHECK(stand.ask(client, wait_for("ready", "n0")).empty());
  module::ReloadCommand reload;
  reload.exclude = IdSet{7};
  stand.service->step(reload);
  CHECK(stand.answer(client).empty());
  stand.join("n0");
  CHECK(stand.answer(client) == "done");
}

TEST_CASE("wait: a malformed request is refused") {
  WaitStand stand;
  const proto::ClientId client = stand.connect();
  CHECK(stand.ask(client, json::object()) == "71 missing key: targets");
  CHECK(stand.ask(client, {{"targets", "0"}}) == "71 missing key: for");
  CHECK(stand.ask(client, wait_for("busy", "0")) == "71 for must be idle, ready or reported");
  CHECK(stand.ask(client, idle("0", "x")) == "71 unreported must be refuse, wait or idle");
  CHECK(stand.ask(client, {{"for", "idle"}, {"targets", 7}}) == "71 targets must be a string");
  CHECK(stand.ask(client, idle("8")) == "22 idset is out of range");
  CHECK(stand.ask(client, idle("")) == "22 idset is empty");
  CHECK(stand.ask(client, idle("n[0-8]")) == "22 unknown host: n8");
}

TEST_CASE("wait: a cancellation, a disconnect and the end of the daemon end it") {
  WaitStand stand{nodes::Settings{}};
  const proto::ClientId client = stand.connect();
  const std::uint32_t matchtag = stand.request(client, "resource.wait", wait_for("ready", "0"));
  stand.request(client, "resource.wait-cancel", {{"matchtag", matchtag}}, noresponse);
  CHECK(stand.answer(client) == "125 the request was cancelled");
  stand.request(client, "resource.wait", wait_for("ready", "0"));
  stand.request(client, "resource.disconnect", nullptr, noresponse);
  stand.join("n0");
  CHECK(stand.answer(client).empty());
  stand.request(client, "resource.wait", wait_for("ready", "1"));
  stand.service->shut_down();
  CHECK(stand.receive(client).errnum() == ECANCELED);
}

TEST_CASE("wait: the requests of one user and of all are bounded, and are looked at some at a time") {
  using service::WaitTopics;
  WaitStand stand{nodes::Settings{}};
  config::Limits limits;
  limits.outstanding_requests = 2 * WaitTopics::most_of_one;
  stand.service->set_limits(limits);
  const proto::ClientId owner = stand.connect();
  for (std::size_t i = 0; i < WaitTopics::most_of_one; ++i)
    stand.request(owner, "resource.wait", wait_for("ready", "0"));
  CHECK(stand.silent(owner));
  // Another connection of the same user.
  const proto::ClientId same = stand.connect();
  CHECK(stand.ask(same, wait_for("ready", "0")) ==
        "16 1024 requests of uid 0 and 1024 of all clients wait for targets already");
  std::vector<proto::ClientId> others;
  for (std::uint32_t uid = 1; uid < WaitTopics::most / WaitTopics::most_of_one; ++uid) {
    others.push_back(stand.connect({uid, uid, {}, {}}));
    for (std::size_t i = 0; i < WaitTopics::most_of_one; ++i)
      stand.request(others.back(), "resource.wait", wait_for("ready", "0"));
  }
  const proto::ClientId late = stand.connect({99, 99, {}, {}});
  CHECK(stand.ask(late, wait_for("ready", "0")) ==
        "16 0 requests of uid 99 and 4096 of all clients wait for targets already");
  stand.disconnect(others.back());
  CHECK(stand.ask(late, wait_for("ready", "0")).empty());
  stand.request(late, "resource.disconnect", nullptr, noresponse);

  stand.say_hello("n0");
  const auto answered = [&] { return stand.transport.sent[owner].size(); };
  std::size_t turns = 0;
  for (; answered() < WaitTopics::most_of_one; ++turns) stand.step();
  CHECK(turns >= WaitTopics::most_of_one / WaitTopics::most_at_once);
  stand.settle();
  CHECK(answered() == WaitTopics::most_of_one);
}

}  // namespace
}  // namespace resourced::daemon::test
