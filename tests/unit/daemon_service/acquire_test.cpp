// Schedulers that ask for more than RFC 28 has: extensions, and a turn.
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "acquire_stand.hpp"
#include "core/constraint/query.hpp"

namespace resourced::daemon::test {

TEST_SUITE_BEGIN("acquire");

TEST_CASE_FIXTURE(AcquireStand, "a response has numbers for a scheduler that knows of extensions, only") {
  const auto plain = connect();
  acquire(plain, {{"partition", "batch"}});
  const json first = receive_json(plain);
  CHECK(first.size() == 2);
  const auto client = connect();
  acquire(client, {{"partition", "night"}, {"extensions", {"cause", "grow", "of the future"}}});
  const json numbered = receive_json(client);
  CHECK(numbered["extensions"] == json{"cause"});
  const auto applied = service->engine().applied();
  CHECK(numbered["sequence"] == applied);
  CHECK_FALSE(numbered.contains("scheduled"));
  CHECK_FALSE(numbered.contains("allocations"));
  CHECK(call(connect(), "resource.drain", {{"targets", "0,2"}}).errnum() == 0);
  CHECK(receive_json(plain) == json{{"down", "0"}});
  CHECK(receive_json(client) ==
        json{{"down", "2"}, {"sequence", applied + 1}, {"cause", {{"drained", "2"}}}});
}

TEST_CASE_FIXTURE(AcquireStand, "a scheduler that reads late is told why its targets are down by then") {
  const auto client = connect();
  acquire(client, {{"partition", "night"}, {"extensions", {"cause"}}});
  (void)receive_json(client);
  transport.full.insert(client);
  const auto admin = connect();
  CHECK(call(admin, "resource.drain", {{"targets", "2"}}).errnum() == 0);
  CHECK(call(admin, "resource.monitor-force-down", {{"ranks", "2"}}).errnum() == 0);
  CHECK(call(admin, "resource.undrain", {{"targets", "2"}}).errnum() == 0);
  transport.full.clear();
  service->on_writable();
  CHECK(receive_json(client) ==
        json{{"down", "2"}, {"sequence", service->engine().applied()}, {"cause", {{"offline", "2"}}}});
}

TEST_CASE_FIXTURE(AcquireStand, "a scheduler with a ledger learns what others do with its allocations") {
  const auto client = connect();
  acquire(client, {{"partition", "batch"}, {"extensions", {"ledger"}}});
  CHECK(receive_json(client)["allocations"] == json::array());
  const json done = alloc(client, "j1", "0");
  CHECK(done == json{{"sequence", service->engine().applied()}});
  const auto admin = connect();
  CHECK(call(admin, "resource.force-free", {{"id", "j1"}, {"partition", "batch"}}).text().empty());
  CHECK(receive_json(client) == json{{"freed", json::array({{{"partition", "batch"}, {"id", "j1"}}})},
                                     {"sequence", service->engine().applied()}});
  alloc(client, "j2", "1");
  request(client, "resource.allocations");
  settle();
  CHECK(receive_json(client)["sequence"] == service->engine().applied());
  CHECK_FALSE(json::parse(call(admin, "resource.allocations").text()).contains("sequence"));
  request(client, "resource.alloc-update", {{"id", "j2"}, {"note", "x"}});
  settle();
  CHECK(receive_json(client) == json{{"sequence", service->engine().applied()}});
  // A scheduler that gets no changes any more still learns when its own are true.
  CHECK(call(admin, "resource.acquire-mute").errnum() == 0);
  request(client, "resource.free", {{"id", "j2"}});
  settle();
  CHECK(receive_json(client) == json{{"sequence", service->engine().applied()}});
  CHECK(silent(client));
}

TEST_CASE_FIXTURE(AcquireStand, "allocations beyond one response follow in others") {
  const auto client = connect();
  acquire(client, {{"allocations", true}});
  receive(client);
  const std::string large(120000, 'x');
  constexpr int many = 16;
  for (int i = 0; i < many; ++i) {
    const json resources = {{"version", 1},
                            {"execution",
                             {{"R_lite", json::array({{{"rank", std::to_string(4 + i / 4)},
                                                       {"children", {{"core", std::to_string(i % 4)}}}}})},
                              {"nodelist", {"n" + std::to_string(4 + i / 4)}}}},
                            {"scheduling", {{"x", large}}}};
    request(client, "resource.alloc", {{"id", std::to_string(i)}, {"R", resources}});
    while (silent(client)) step();
    REQUIRE(receive(client).errnum() == 0);
  }
  disconnect(client);
  const auto whole = connect();
  const auto tag = acquire(whole, {{"allocations", true}});
  CHECK(receive_json(whole)["allocations"].size() == many);
  request(whole, "resource.acquire-cancel", {{"matchtag", tag}}, noresponse);
  settle();
  const auto parts = connect();
  acquire(parts, {{"extensions", {"ledger"}}});
  json part = receive_json(parts);
  CHECK(part.contains("resources"));
  std::size_t count = part["allocations"].size();
  int responses = 1;
  for (; part.value("more", false); ++responses) {
    CHECK(part.dump().size() < (std::size_t{1} << 20U) + 65536);
    part = receive_json(parts);
    CHECK(part["sequence"] == service->engine().applied());
    count += part["allocations"].size();
  }
  CHECK(responses == 2);
  CHECK(count == many);
  CHECK(silent(parts));
  // Each page of a listing has a number, too.
  std::string after;
  int pages = 0;
  do {
    request(parts, "resource.allocations", {{"after", after}});
    settle();
    const json page = receive_json(parts);
    CHECK(page["sequence"] == service->engine().applied());
    after = page.value("next", "");
    ++pages;
  } while (!after.empty());
  CHECK(pages > 1);
}

TEST_CASE_FIXTURE(AcquireStand, "the first response has the scheduled drains of its targets") {
  const auto admin = connect();
  CHECK(call(admin, "resource.drain", {{"targets", "1-2"}, {"reason", "power"}, {"from", 2000.0}}).errnum() ==
        0);
  const auto client = connect();
  acquire(client, {{"partition", "night"}, {"extensions", {"scheduled"}}});
  const json scheduled = json::array({{{"idset", "2"}, {"from", 2000.0}, {"reason", "power"}}});
  CHECK(receive_json(client)["scheduled"] == scheduled);
  CHECK(call(admin, "resource.drain-cancel", {{"targets", "1-2"}}).errnum() == 0);
  CHECK(receive_json(client)["scheduled"] == json::array());
}

TEST_CASE_FIXTURE(AcquireStand, "schedulers that wait are served in the order in which they came") {
  const auto holder = connect();
  const auto tag = acquire(holder, {{"partition", "batch"}});
  receive(holder);
  const auto first = connect();
  const auto second = connect();
  acquire(second, {{"partition", "batch"}, {"wait", true}});
  acquire(first, {{"partition", "batch"}, {"wait", true}});
  CHECK(silent(second));
  CHECK(waiting() == json::array({{{"since", now}, {"by", {{"userid", 0}}}, {"partition", "batch"}},
                                  {{"since", now}, {"by", {{"userid", 0}}}, {"partition", "batch"}}}));
  request(holder, "resource.acquire-cancel", {{"matchtag", tag}}, noresponse);
  CHECK(receive(holder).errnum() == ECANCELED);
  // The resources are those of the next one already.
  const auto late = connect();
  request(late, "resource.acquire", {{"partition", "batch"}}, streaming);
  settle();
  CHECK(receive(late).errnum() == EBUSY);
  CHECK(receive_json(second)["up"] == "0-1");
  CHECK(silent(first));
  CHECK(waiting().size() == 1);
  disconnect(second);
  settle();
  CHECK(receive_json(first)["up"] == "0-1");
  CHECK(waiting().empty());
}

TEST_CASE_FIXTURE(AcquireStand,
                  "a wait ends by a cancel, silently with its client, and for an operator's evict") {
  const auto holder = connect();
  acquire(holder, {{"partition", "batch"}});
  receive(holder);
  const auto one = connect();
  const auto tag = acquire(one, {{"partition", "batch"}, {"wait", true}});
  const auto gone = connect();
  acquire(gone, {{"partition", "batch"}, {"wait", true}});
  const auto next = connect();
  acquire(next, {{"partition", "batch"}, {"wait", true}});
  request(one, "resource.acquire-cancel", {{"matchtag", tag}}, noresponse);
  CHECK(receive(one).errnum() == ECANCELED);
  disconnect(gone);
  CHECK(waiting().size() == 1);
  const auto admin = connect();
  const json since = json::parse(call(admin, "resource.peers").text())["holders"][0]["since"];
  CHECK(call(admin, "resource.evict", {{"partition", "batch"}, {"since", since}}).errnum() == 0);
  CHECK(receive(holder).errnum() == ECONNABORTED);
  settle();
  CHECK(receive_json(next)["up"] == "0-1");
}

TEST_CASE_FIXTURE(AcquireStand, "no scheduler waits for itself, or with too many others") {
  const auto holder = connect();
  acquire(holder, {{"partition", "batch"}});
  receive(holder);
  acquire(holder, {{"partition", "batch"}, {"wait", true}});
  const proto::Message refused = receive(holder);
  CHECK(refused.errnum() == EDEADLK);
  CHECK(refused.text() == "this connection has acquired partition batch already");
  acquire(holder, {{"partition", "gone"}, {"wait", true}});
  CHECK(receive(holder).errnum() == ENOENT);
  const auto twice = connect();
  acquire(twice, {{"partition", "batch"}, {"wait", true}});
  CHECK(silent(twice));
  acquire(twice, {{"partition", "batch"}, {"wait", true}});
  const proto::Message second = receive(twice);
  CHECK(second.errnum() == EDEADLK);
  CHECK(second.text() == "this connection waits for partition batch already");
  disconnect(twice);
  // The bound is that of each user or key, whatever others have used up.
  config::Access site;
  site.rules = {{{1000}, {}, {config::Role::scheduler}}};
  site.keys = {{"one", std::string(40, 'a'), {config::Role::scheduler}},
               {"two", std::string(40, 'b'), {config::Role::scheduler}}};
  service->set_access(peers::Access(site, 0));
  const std::vector<std::pair<std::string, transport::Credentials>> all{
      {"uid 0", {0, 0, {}, {}}},
      {"uid 1000", {1000, 1000, {}, {}}},
      {"key one", {proto::userid_unknown, proto::userid_unknown, std::string(40, 'a'), {}}},
      {"key two", {proto::userid_unknown, proto::userid_unknown, std::string(40, 'b'), {}}}};
  for (const auto& one : all) {
    constexpr int most = 64;
    for (int i = 0; i < most; ++i) {
      const auto client = connect(one.second);
      acquire(client, {{"partition", "batch"}, {"wait", true}});
      CHECK(silent(client));
    }
    const auto client = connect(one.second);
    acquire(client, {{"partition", "batch"}, {"wait", true}});
    const proto::Message full = receive(client);
    CHECK(full.errnum() == ENOBUFS);
    CHECK(full.text() == "64 requests of " + one.first + " wait for resources already");
  }
}

TEST_CASE_FIXTURE(AcquireStand, "a wait for a partition that loses its last target ends with its name") {
  partitions.push_back({"fast", std::nullopt, constraint::parse_query("fast")});
  restart();
  const auto admin = connect();
  const auto property = [&](const char* op) {
    CHECK(call(admin, "resource.property", {{"op", op}, {"name", "fast"}, {"targets", "6"}}).errnum() == 0);
  };
  property("add");
  const auto holder = connect();
  const auto tag = acquire(holder, {{"partition", "fast"}});
  CHECK(receive_json(holder)["up"] == "6");
  const auto of_batch = connect();
  acquire(of_batch, {{"partition", "batch"}});
  CHECK(receive_json(of_batch)["up"] == "0-1");
  const auto client = connect();
  acquire(client, {{"partition", "fast"}, {"wait", true}});
  const auto other = connect();
  acquire(other, {{"partition", "batch"}, {"wait", true}});
  CHECK(call(admin, "resource.drain", {{"targets", "6"}}).errnum() == 0);
  CHECK(silent(client));

  property("remove");
  settle();
  const proto::Message end = receive(client);
  CHECK(end.errnum() == ENOENT);
  CHECK(end.text() == "partition fast has no targets to wait for");
  CHECK(silent(other));
  CHECK(waiting().size() == 1);
  // The holder keeps the target, so that the next wait would last until it leaves, and get nothing.
  acquire(client, {{"partition", "fast"}, {"wait", true}});
  CHECK(receive(client).text() == "partition fast has no targets to wait for");
  acquire(client, {{"partition", "fast"}});
  CHECK(receive(client).errnum() == EBUSY);
  request(holder, "resource.acquire-cancel", {{"matchtag", tag}}, noresponse);
  settle();
  acquire(client, {{"partition", "fast"}, {"wait", true}});
  CHECK(receive_json(client)["up"] == "");
}

TEST_CASE_FIXTURE(AcquireStand, "nobody waits for targets outside of partitions that have all of them") {
  partitions.push_back({"rest", text::IdSet{4, 5, 6, 7}, {}});
  restart();
  const auto holder = connect();
  acquire(holder, json::object());
  CHECK(receive_json(holder)["up"] == "");
  const auto client = connect();
  acquire(client, {{"wait", true}});
  const proto::Message refused = receive(client);
  CHECK(refused.errnum() == ENOENT);
  CHECK(refused.text() == "outside of the partitions there are no targets to wait for");
}

TEST_CASE_FIXTURE(AcquireStand,
                  "a wait that began before the inventory was known ends with an unknown name") {
  discovery = nodes::DiscoverySettings{.size = 3};
  restart();
  const auto client = connect();
  acquire(client, {{"partition", "gone"}, {"wait", true}});
  const auto other = connect();
  acquire(other, {{"partition", "batch"}, {"wait", true}});
  CHECK(silent(client));
  CHECK(waiting().size() == 2);
  module::DefineCommand command;
  const text::IdSet ranks = text::IdSet::range(0, 7);
  command.inventory = std::make_shared<const rset::ResourceSet>(
      rset::ResourceSet({{ranks, text::IdSet::range(0, 3), {}}}, text::Hostlist::parse("n[0-7]")));
  command.online = ranks;
  command.partitions = partitions;
  service->step(engine::Start{command});
  service->on_defined();
  settle();
  const proto::Message end = receive(client);
  CHECK(end.errnum() == ENOENT);
  CHECK(end.text() == "unknown partition: gone");
  CHECK(receive_json(other)["up"] == "0-1");
  CHECK(waiting().empty());
}

TEST_SUITE_END();

}  // namespace resourced::daemon::test
