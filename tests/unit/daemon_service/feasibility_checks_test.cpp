// feasibility.check at the service: checked on another thread than the loop, within a budget, and a bounded
// number at a time.
#include <algorithm>
#include <cerrno>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "no_threads.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

json nodes(int count, const json& constraints = nullptr) {
  json jobspec{{"resources", {{{"type", "node"}, {"count", count}}}}};
  if (!constraints.is_null()) jobspec["attributes"]["system"]["constraints"] = constraints;
  return {{"jobspec", jobspec}};
}

/// A check that takes some tenths of a second: its constraint has unknown hosts, which are searched one by
/// one.
json slow() { return nodes(1, {{"hostlist", {"n0,x[1-250000]"}}}); }
/// A check with more such hosts than the budget allows.
json too_slow() { return nodes(1, {{"hostlist", {"n0,x[1-1000000]"}}}); }

TEST_CASE("a check beyond its budget is answered 110 and says so") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  const proto::Message refused = stand.call(client, "feasibility.check", too_slow());
  CHECK(refused.errnum() == ETIMEDOUT);
  CHECK(refused.text() == "checking the request takes more than 20000000 steps");
  CHECK(stand.call(client, "feasibility.check", nodes(8)).errnum() == 0);
  CHECK(stand.call(client, "feasibility.check", nodes(9)).errnum() == EINVAL);
}

TEST_CASE("without a thread to be had a check is refused, and the next one finds one") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  {
    const NoThreads none;
    stand.request(client, "feasibility.check", nodes(1));
    const proto::Message refused = stand.receive(client);
    CHECK(refused.errnum() == EAGAIN);
    CHECK(refused.text().starts_with("cannot start a thread for feasibility checks: "));
  }
  CHECK(stand.call(client, "feasibility.check", nodes(8)).errnum() == 0);
}

TEST_CASE("a check does not keep the loop: its answer comes in a later turn") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  const proto::ClientId other = stand.connect();
  stand.request(client, "feasibility.check", too_slow());
  CHECK(stand.silent(client));
  CHECK(stand.call(other, "resource.drain", {{"targets", "1"}}).errnum() == 0);
  while (stand.silent(client)) stand.step();
  CHECK(stand.receive(client).errnum() == ETIMEDOUT);
}

TEST_CASE("the answer waits until the changes that its client has sent before are on disk") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  for (int i = 0; i < 20; ++i) {
    stand.request(client, "resource.shrink", {{"targets", "n7"}}, noresponse);
    stand.request(client, "resource.drain", {{"targets", "1"}, {"mode", "update"}}, noresponse);
    stand.request(client, "resource.undrain", {{"targets", "1"}}, noresponse);
    stand.request(client, "feasibility.check", nodes(8));
    const log::Sequence seen = stand.service->engine().applied();
    while (stand.silent(client)) stand.step();
    CHECK(stand.committed >= seen);
    CHECK(stand.receive(client).text() == "needs 8 nodes, the inventory has 7");
  }
}

TEST_CASE("excluded targets do not count, and a changed inventory counts once it is on disk") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  CHECK(stand.call(client, "feasibility.check", nodes(8)).errnum() == 0);
  stand.service->step(module::ReloadCommand{text::IdSet::parse("2-3"), {}, {}});
  stand.settle();
  CHECK(stand.call(client, "feasibility.check", nodes(7)).text() == "needs 7 nodes, the inventory has 6");
  CHECK(stand.call(client, "feasibility.check", nodes(6)).errnum() == 0);
  stand.service->step(module::ReloadCommand{{}, {}, {}});
  stand.settle();
  CHECK(stand.call(client, "feasibility.check", nodes(8)).errnum() == 0);
}

TEST_CASE("the checks of a client that goes are dropped, and its matchtags may be used again") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  const proto::ClientId other = stand.connect();
  const auto ask = [&](std::uint32_t matchtag, const json& payload) {
    stand.service->on_message(
        client, proto::make_request("feasibility.check", matchtag, proto::make_payload(payload.dump())));
  };
  // The first check is running when its client disconnects, the others wait.
  for (const std::uint32_t matchtag : {1U, 2U, 3U}) ask(matchtag, too_slow());
  stand.request(client, "resource.disconnect", nullptr, noresponse);
  ask(2, nodes(1));
  while (stand.silent(client)) stand.step();
  const proto::Message answer = stand.receive(client);
  CHECK(answer.matchtag == 2);
  CHECK(answer.errnum() == 0);
  CHECK(stand.call(other, "feasibility.check", nodes(1)).errnum() == 0);
  CHECK(stand.silent(client));
}

TEST_CASE("what waits is bounded, and others have their turn") {
  Stand stand;
  config::Limits limits;
  limits.outstanding_requests = 100000;
  stand.service->set_limits(limits);
  config::Access rules;
  rules.local = {config::Role::user};
  stand.service->set_access(peers::Access(rules, 0));
  const proto::ClientId hostile = stand.connect({1001, 1001, {}, {}});
  const proto::ClientId friendly = stand.connect({1002, 1002, {}, {}});
  // The hostile client fills the queue of waiting checks; more are taken while some are checked.
  const auto bytes = proto::make_payload(slow().dump());
  std::uint32_t asked = 0;
  while (stand.silent(hostile) && asked < 100'000) {
    stand.service->on_message(hostile, proto::make_request("feasibility.check", ++asked, bytes));
  }
  CHECK(asked > service::FeasibilityChecks::max_waiting);
  CHECK(stand.receive(hostile).errnum() == EBUSY);
  const std::size_t before = stand.transport.sent[hostile].size();
  stand.request(friendly, "feasibility.check", nodes(1));
  // Answered before the friendly client: the checks that were done by then, and the one that was running.
  const std::size_t most = stand.posted() + 1;
  while (stand.silent(friendly)) stand.step();
  CHECK(stand.receive(friendly).errnum() == 0);
  CHECK(stand.transport.sent[hostile].size() - before <= most);
  // Fewer requests may wait if they are large.
  stand.disconnect(hostile);
  const proto::ClientId large = stand.connect({1003, 1003, {}, {}});
  json payload = slow();
  payload["x"] = std::string(std::size_t{1023} << 10, 'x');
  const auto large_bytes = proto::make_payload(payload.dump());
  std::uint32_t taken = 0;
  while (stand.silent(large) && taken < 1000) {
    stand.service->on_message(large, proto::make_request("feasibility.check", ++taken, large_bytes));
  }
  CHECK(stand.receive(large).errnum() == EBUSY);
  CHECK(taken > 16);
  CHECK(taken < 1000);
  stand.disconnect(large);
}

TEST_CASE("a daemon that ends answers the checks that wait") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  stand.request(client, "feasibility.check", slow());
  stand.request(client, "feasibility.check", slow());
  stand.service->shut_down();
  CHECK(stand.receive(client).errnum() == ECANCELED);
  CHECK(stand.receive(client).errnum() == ECANCELED);
}

TEST_CASE("a check without a response is not made, and a bad one says what is wrong") {
  Stand stand;
  const proto::ClientId client = stand.connect();
  stand.request(client, "feasibility.check", nodes(1), noresponse);
  const proto::Message none = stand.call(client, "feasibility.check");
  CHECK(none.errnum() == EPROTO);
  CHECK(stand.call(client, "feasibility.check", json::object()).text() == "missing key: jobspec");
  CHECK(stand.call(client, "feasibility.check", {{"jobspec", 1}}).text() == "jobspec must be an object");
  CHECK(stand.call(client, "feasibility.check", {{"jobspec", json::object()}}).errnum() == EINVAL);
  CHECK(stand.silent(client));
}

}  // namespace
}  // namespace resourced::daemon::test
