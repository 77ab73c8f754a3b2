// The checks of a request before its topic: roles and limits, also when they change while a client is
// connected.
#include <doctest/doctest.h>

#include "proto/message.hpp"
#include "proto/topics/liveness.hpp"
#include "proto/topics/status.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using config::Role;
using nlohmann::json;
constexpr std::uint32_t unknown = proto::userid_unknown;

transport::Credentials user(std::uint32_t uid) { return {uid, 100, {}, {}}; }
transport::Credentials key(char c) { return {unknown, unknown, std::string(40, c), "10.0.0.1"}; }

peers::Access access(const std::vector<config::AccessRule>& rules,
                     const std::vector<config::AccessKey>& keys = {}) {
  config::Access site;
  site.rules = rules;
  site.keys = keys;
  return {site, 0};
}

struct TopicRow {
  const char* topic;
  json payload;
  std::uint8_t flags;
  // The roles with access: u for user, s for scheduler, a for admin, g for agent.
  std::string roles;
};

// Every topic, with a valid request.
std::vector<TopicRow> topics() {
  return {
      {"resource.status", nullptr, 0, "usa"},
      {"resource.sched-status", nullptr, 0, "usa"},
      {"resource.get", nullptr, 0, "usa"},
      {"resource.journal", json::object(), streaming, "usa"},
      {"resource.stats-get", nullptr, 0, "usa"},
      {"resource.metrics", nullptr, 0, "usa"},
      {"resource.ready", nullptr, 0, "usa"},
      {"resource.ping", nullptr, 0, "usa"},
      {"config.get", nullptr, 0, "usa"},
      {"attr.get", proto::topics::encode_attr_get("hostlist"), 0, "usa"},
      {"resource.user-names", {{"userids", "0"}}, 0, "usa"},
      {"feasibility.check", {{"jobspec", json::object()}}, 0, "usa"},
      {"resource.acquire", nullptr, streaming, "s"},
      {"resource.acquire-renew", nullptr, 0, "s"},
      {"resource.acquire-mute", nullptr, 0, "a"},
      {"resource.evict", {{"since", 1000}}, 0, "a"},
      {"resource.drain", {{"targets", "1"}}, 0, "a"},
      {"resource.undrain", {{"targets", "1"}}, 0, "a"},
      {"resource.property", {{"op", "add"}, {"name", "x"}, {"targets", "1"}}, 0, "a"},
      {"resource.expiration", {{"expiration", 5000}}, 0, "a"},
      {"resource.shrink", {{"targets", "1"}}, 0, "a"},
      {"resource.reload", nullptr, 0, "a"},
      {"resource.expiration-update", {{"expiration", 5000}}, 0, "a"},
      {"resource.monitor-waitup", proto::topics::encode_waitup(8), 0, ""},
      {"resource.monitor-force-down", proto::topics::encode_force_down(text::IdSet{1}), 0, ""},
      {"resource.stats-clear", nullptr, 0, ""},
  };
}

TEST_CASE("each way in tells of the user, whose groups may give a role, also where he has none yet") {
  Stand stand;
  const auto told = [&](const auto& ask, std::uint32_t uid) {
    stand.users_told.clear();
    (void)ask(transport::Credentials{uid, uid, {}, {}});
    return stand.users_told == std::vector<std::uint32_t>{uid};
  };
  CHECK(told([&](const auto& who) { return stand.service->welcomes(who); }, 4711));
  CHECK(told([&](const auto& who) { return stand.service->may_read(who); }, 4712));
  (void)stand.connect({4713, 4713, {}, {}});
  CHECK(stand.service->connected_users() == std::set<std::uint32_t>{4713});
}

TEST_CASE("each topic has its role, and everybody else is denied it and leaves no trace") {
  const struct {
    char letter;
    Role role;
  } roles[] = {{'u', Role::user}, {'s', Role::scheduler}, {'a', Role::admin}, {'g', Role::agent}};
  for (const auto& [letter, role] : roles) {
    Stand stand;
    stand.service->set_access(access({{{1001}, {}, {role}}}));
    const proto::ClientId client = stand.connect(user(1001));
    const proto::ClientId owner = stand.connect();
    const json before = json::parse(stand.call(owner, "resource.status").text());
    int denied = 0;
    for (const TopicRow& row : topics()) {
      if (row.roles.find(letter) != std::string::npos) continue;
      CAPTURE(letter);
      CAPTURE(row.topic);
      stand.request(client, row.topic, row.payload, row.flags);
      stand.settle();
      const proto::Message refusal = stand.receive(client);
      CHECK(refusal.errnum() == EPERM);
      CHECK(refusal.text().starts_with(std::string(row.topic) + " requires the role "));
      stand.request(client, row.topic, row.payload, row.flags | noresponse);
      stand.settle();
      CHECK(stand.silent(client));
      CHECK(json::parse(stand.call(owner, "resource.status").text()) == before);
      const json stats = json::parse(stand.call(owner, "resource.stats-get").text());
      denied += 2;
      CHECK(stats["denied-requests"] == denied);
      CHECK(stats["subscribers"] == 0);
      CHECK(stats["journal-consumers"] == 0);
    }
    for (const TopicRow& row : topics()) {
      if (row.roles.find(letter) == std::string::npos) continue;
      if (std::string_view(row.topic) == "resource.reload") continue;  // the stand has no reload
      CAPTURE(letter);
      CAPTURE(row.topic);
      stand.request(client, row.topic, row.payload, row.flags);
      stand.settle();
      while (!stand.silent(client)) CHECK(stand.receive(client).errnum() != EPERM);
    }
  }
}

TEST_CASE("what concerns only a client's own requests takes no role, an unknown topic is unknown to all") {
  Stand stand;
  stand.service->set_access(access({{{1001}, {}, {}}}));
  const proto::ClientId nobody = stand.connect(user(1001));
  stand.request(nobody, "resource.acquire-cancel", {{"matchtag", 1}}, noresponse);
  stand.request(nobody, "resource.journal-cancel", {{"matchtag", 1}}, noresponse);
  stand.request(nobody, "resource.disconnect", nullptr, noresponse);
  CHECK(stand.silent(nobody));
  const json version = json::parse(stand.call(nobody, "resource.version").text());
  CHECK(version["version"] == RESOURCED_VERSION);
  CHECK(version["protocol"] == 1);
  CHECK(version["extensions"] == json{"ledger", "scheduled", "cause"});
  CHECK(version["topics"].size() == service::Topics::all().size());
  CHECK(stand.call(nobody, "no.such").errnum() == ENOSYS);
  CHECK(stand.call(nobody, "resource.status").errnum() == EPERM);
}

TEST_CASE("claimed credentials help nobody but the owner, who may ask for less") {
  Stand stand;
  const proto::ClientId guest = stand.connect(user(1001));
  const proto::ClientId owner = stand.connect();
  const auto drain_as = [&](proto::ClientId client, std::uint32_t rolemask) {
    auto request = proto::make_request("resource.drain", 7, proto::make_payload(R"({"targets":"1"})"));
    request.userid = 2000;
    request.rolemask = rolemask;
    stand.service->on_message(client, std::move(request));
    stand.settle();
    return stand.receive(client).errnum();
  };
  for (const std::uint32_t rolemask : {0U, 1U, 8U, 0xFFFFFFFFU}) CHECK(drain_as(guest, rolemask) == EPERM);
  CHECK(drain_as(owner, proto::role::user) == EPERM);
  CHECK(drain_as(owner, proto::role::admin) == 0);
}

struct Asker {
  transport::Credentials credentials;
  std::uint32_t userid;
  std::uint32_t rolemask;
};

// Each kind of connection, with the credentials of its requests and their responses.
std::vector<Asker> askers() {
  return {
      {{0, 0, {}, {}}, 0, proto::role::owner | proto::role::local},
      {user(1001), 1001, proto::role::user | proto::role::local | proto::role::admin},
      {user(1002), 1002, proto::role::user | proto::role::local},
      {user(1003), 1003, proto::role::local},
      {key('u'), unknown, proto::role::user},
      {key('a'), unknown, proto::role::user | proto::role::admin},
      {key('o'), unknown, proto::role::user | proto::role::admin},
      {{unknown, unknown, {}, "10.0.0.1"}, unknown, proto::role::user},
  };
}

peers::Access with_askers() {
  return access({{{1001}, {}, {Role::admin}}, {{1003}, {}, {}}},
                {{"u", std::string(40, 'u'), {Role::user}},
                 {"a", std::string(40, 'a'), {Role::admin}},
                 {"o", std::string(40, 'o'), {Role::owner}}});
}

TEST_CASE("every response carries the credentials of its connection, whatever is asked and answered") {
  for (const Asker& asker : askers()) {
    CAPTURE(asker.userid);
    CAPTURE(asker.rolemask);
    Stand stand;
    stand.service->set_access(with_askers());
    const proto::ClientId client = stand.connect(asker.credentials);
    std::size_t responses = 0;
    const auto hear = [&] {
      stand.settle();
      while (!stand.silent(client)) {
        const proto::Message response = stand.receive(client);
        CAPTURE(response.topic);
        CHECK(response.userid == asker.userid);
        CHECK(response.rolemask == asker.rolemask);
        ++responses;
      }
    };
    std::vector<TopicRow> rows = topics();
    rows.push_back({"no.such", nullptr, 0, ""});
    rows.push_back({"resource.drain", {{"targets", "99"}}, 0, ""});
    rows.push_back({"resource.drain", nullptr, 0, ""});
    rows.push_back({"resource.acquire", nullptr, 0, ""});
    for (const TopicRow& row : rows) {
      CAPTURE(row.topic);
      if (std::string_view(row.topic) == "resource.reload") continue;  // the stand has no reload
      const std::size_t before = responses;
      stand.request(client, row.topic, row.payload, row.flags);
      // Another thread than the store's makes this check.
      while (std::string_view(row.topic) == "feasibility.check" && stand.silent(client)) stand.step();
      hear();
      CHECK(responses > before);
    }
    // Also checks later responses of the open streams, and their ends.
    const proto::ClientId owner = stand.connect();
    CHECK(stand.call(owner, "resource.drain", {{"targets", "3"}}).errnum() == 0);
    hear();
    config::Limits limits;
    limits.outstanding_requests = 0;
    stand.service->set_limits(limits);
    const std::size_t before = responses;
    stand.request(client, "resource.status");
    CHECK(stand.transport.sent[client].front().errnum() == EBUSY);
    hear();
    CHECK(responses == before + 1);
    stand.service->shut_down();
    hear();
  }
}

TEST_CASE("what an owner claims to be stands in all responses, those of a stream and its end included") {
  Stand stand;
  const proto::ClientId owner = stand.connect();
  auto request = proto::make_request("resource.journal", 7, nullptr, streaming);
  request.userid = 1001;
  request.rolemask = proto::role::user;
  stand.service->on_message(owner, std::move(request));
  stand.settle();
  stand.request(owner, "resource.drain", {{"targets", "1"}});
  stand.settle();
  stand.request(owner, "resource.journal-cancel", {{"matchtag", 7}}, noresponse);
  stand.settle();
  std::size_t claimed = 0;
  while (!stand.silent(owner)) {
    const proto::Message response = stand.receive(owner);
    const bool is_stream = response.matchtag == 7;
    CHECK(response.userid == (is_stream ? 1001 : 0));
    CHECK(response.rolemask == (is_stream ? proto::role::user : proto::role::owner | proto::role::local));
    if (is_stream) ++claimed;
  }
  // The four responses are history, sentinel, the drain and the end.
  CHECK(claimed == 4);
}

TEST_CASE("a key that is revoked or exchanged is cut off at once, with what it holds") {
  Stand stand;
  const config::AccessKey scheduler_key{"s", std::string(40, 's'), {Role::scheduler}};
  stand.service->set_access(access({}, {scheduler_key}));
  const proto::ClientId scheduler = stand.connect(key('s'));
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(scheduler).errnum() == 0);
  const proto::ClientId owner = stand.connect();

  SUBCASE("revoked") { stand.service->set_access(access({})); }
  SUBCASE("exchanged") {
    stand.service->set_access(access({}, {{"s", std::string(40, 'S'), {Role::scheduler}}}));
  }
  CHECK(stand.transport.gone.contains(scheduler));
  stand.request(owner, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(owner).errnum() == 0);
  // Requests from the connection that was cut off are ignored.
  stand.request(scheduler, "resource.status");
  CHECK(stand.silent(scheduler));
}

TEST_CASE("hosts of a key bind all that it changes, whatever its roles") {
  Stand stand("n[0-7]");
  const config::AccessKey rack{"rack",
                               std::string(40, 'r'),
                               {Role::agent, Role::admin, Role::scheduler},
                               text::Hostlist::parse("n[3-4],gone")};
  stand.service->set_access(access({}, {rack}));
  const proto::ClientId client = stand.connect(key('r'));
  const proto::ClientId owner = stand.connect();
  const auto errnum = [&](const char* topic, const json& payload) {
    const proto::Message response = stand.call(client, topic, payload);
    if (response.errnum() == EPERM) CHECK(response.text().find("key rack") != std::string::npos);
    return response.errnum();
  };
  const json before = json::parse(stand.call(owner, "resource.status").text());
  for (const char* targets : {"0", "n0", "n[3-5]", "0-7"}) {
    CAPTURE(targets);
    for (const char* topic : {"resource.drain", "resource.undrain", "resource.drain-cancel",
                              "resource.shrink", "resource.unshrink"})
      CHECK(errnum(topic, {{"targets", targets}}) == EPERM);
    CHECK(errnum("resource.property", {{"op", "add"}, {"name", "x"}, {"targets", targets}}) == EPERM);
  }
  CHECK(errnum("resource.forget", {{"hosts", "n[3-5]"}}) == EPERM);
  const std::pair<const char*, json> wide[] = {{"resource.expiration", {{"expiration", 5000}}},
                                               {"resource.expiration-update", {{"expiration", 5000}}},
                                               {"resource.reload", nullptr},
                                               {"resource.acquire-mute", nullptr},
                                               {"resource.evict", {{"since", 1000}}},
                                               {"resource.hand-over", nullptr},
                                               {"resource.alloc", json::object()},
                                               {"resource.free", {{"id", "1"}}}};
  for (const auto& [topic, payload] : wide) {
    CAPTURE(topic);
    CHECK(errnum(topic, payload) == EPERM);
  }
  stand.request(client, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(client).errnum() == EPERM);
  CHECK(json::parse(stand.call(owner, "resource.status").text()) == before);

  CHECK(errnum("resource.drain", {{"targets", "n[3-4]"}}) == 0);
  CHECK(errnum("resource.undrain", {{"targets", "3-4"}}) == 0);
  CHECK(errnum("resource.property", {{"op", "add"}, {"name", "x"}, {"targets", "n4"}}) == 0);
  CHECK(errnum("resource.shrink", {{"targets", "n3"}}) == 0);
  CHECK(errnum("resource.unshrink", {{"targets", "n3"}}) == 0);
  CHECK(errnum("resource.forget", {{"hosts", "gone"}}) == ENOENT);
  CHECK(errnum("resource.drain", {{"targets", "gone"}}) == EINVAL);
  CHECK(errnum("resource.status", nullptr) == 0);
}

TEST_CASE("an allocation is freed by force with a key that is bound to its hosts, and with no other") {
  Stand stand("n[0-7]");
  const config::AccessKey rack{"rack", std::string(40, 'r'), {Role::admin}, text::Hostlist::parse("n[3-4]")};
  stand.service->set_access(access({}, {rack}));
  const proto::ClientId owner = stand.connect();
  stand.request(owner, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(owner).errnum() == 0);
  const auto allocate = [&](const char* id, const char* rank, const char* host) {
    const json r{{"version", 1},
                 {"execution",
                  {{"R_lite", {{{"rank", rank}, {"children", {{"core", "0"}}}}}},
                   {"nodelist", {host}},
                   {"starttime", 0},
                   {"expiration", 0}}}};
    CHECK(stand.call(owner, "resource.alloc", {{"id", id}, {"R", r}}).errnum() == 0);
  };
  allocate("a", "2-3", "n[2-3]");
  allocate("b", "4", "n4");
  const proto::ClientId client = stand.connect(key('r'));
  CHECK(stand.call(client, "resource.alloc-update", {{"id", "b"}, {"note", "x"}}).errnum() == EPERM);
  CHECK(stand.call(client, "resource.force-free", {{"id", "a"}}).errnum() == EPERM);
  CHECK(stand.call(client, "resource.force-free", {{"id", "b"}}).errnum() == 0);
  CHECK(stand.call(client, "resource.force-free", {{"id", "c"}}).errnum() == ENOENT);
}

TEST_CASE("an acquisition ends when its key is bound to hosts") {
  Stand stand;
  config::AccessKey scheduler{"s", std::string(40, 's'), {Role::scheduler}};
  stand.service->set_access(access({}, {scheduler}));
  const proto::ClientId client = stand.connect(key('s'));
  stand.request(client, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(client).errnum() == 0);
  scheduler.hosts = text::Hostlist::parse("n0");
  stand.service->set_access(access({}, {scheduler}));
  CHECK(stand.receive(client).errnum() == EPERM);
}

TEST_CASE("a role that is lost ends what it was needed for, and nothing else") {
  Stand stand;
  stand.service->set_access(access({{{1001}, {}, {Role::scheduler}}}));
  const proto::ClientId client = stand.connect(user(1001));
  stand.request(client, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(client).errnum() == 0);
  stand.request(client, "resource.journal", json::object(), streaming);
  stand.settle();
  while (!stand.silent(client)) CHECK(stand.receive(client).errnum() == 0);

  stand.service->set_access(access({{{1001}, {}, {Role::user}}}));
  CHECK(stand.receive(client).errnum() == EPERM);
  CHECK(stand.silent(client));
  const proto::ClientId owner = stand.connect();
  CHECK(stand.call(owner, "resource.drain", {{"targets", "1"}}).errnum() == 0);
  CHECK(stand.receive_json(client)["events"][0]["name"] == "drain");

  stand.service->set_access(access({{{1001}, {}, {Role::admin}}}));
  CHECK(stand.call(client, "resource.undrain", {{"targets", "1"}}).errnum() == 0);
}

TEST_CASE("what everybody may ask for is short, as it is read for everybody or sent back") {
  Stand stand;
  const proto::ClientId guest = stand.connect(user(1001));
  const auto ask = [&](const char* topic, std::size_t size) {
    const json empty{{"jobspec", {{"x", ""}}}};
    json payload = empty;
    // The bound is on the size of the object with its NUL.
    payload["jobspec"]["x"] = std::string(size - empty.dump().size() - 1, 'x');
    return stand.call(guest, topic, payload).errnum();
  };
  CHECK(ask("resource.ping", 65536) == 0);
  CHECK(ask("resource.ping", 65537) == EMSGSIZE);
  CHECK(ask("feasibility.check", 1048576) == EINVAL);
  CHECK(ask("feasibility.check", 1048577) == EMSGSIZE);
  CHECK(ask("resource.status", 16384) == 0);
  CHECK(ask("resource.status", 16385) == EMSGSIZE);
  // A request without the right to its topic is not checked for size.
  CHECK(ask("resource.drain", 1048577) == EPERM);
  const auto drain = [&](std::size_t reason) {
    const json payload{{"targets", "1"}, {"reason", std::string(reason, 'x')}};
    return stand.call(stand.connect(), "resource.drain", payload).errnum();
  };
  CHECK(drain(1048577) == EMSGSIZE);
  CHECK(drain(1000000) == 0);
}

TEST_CASE("a request of many values is refused, as each costs more than its two bytes") {
  Stand stand;
  const auto ask = [&](std::size_t values) {
    json payload{{"jobspec", {{"x", json::array()}}}};
    for (std::size_t i = 3; i < values; ++i) payload["jobspec"]["x"].push_back(1);
    return stand.call(stand.connect(user(1001)), "feasibility.check", payload).errnum();
  };
  CHECK(ask(16384) == EINVAL);
  CHECK(ask(16385) == EPROTO);
  // Other payloads than a jobspec need few values.
  const auto drain = [&](std::size_t values) {
    json payload{{"targets", "1"}, {"x", json::array()}};
    for (std::size_t i = 3; i < values; ++i) payload["x"].push_back(1);
    return stand.call(stand.connect(), "resource.drain", payload).errnum();
  };
  CHECK(drain(1024) == 0);
  CHECK(drain(1025) == EPROTO);
}

TEST_CASE("a client that does not read may lose its role in the middle of many streams") {
  Stand stand;
  config::Limits limits;
  limits.outstanding_requests = 100000;
  stand.service->set_limits(limits);
  const proto::ClientId client = stand.connect(user(1001));
  for (int i = 0; i < 3; ++i) stand.request(client, "resource.journal", json::object(), streaming);
  stand.settle();
  stand.transport.full.insert(client);
  for (std::size_t i = 0; i < peers::Clients::max_backlog; ++i) stand.request(client, "resource.ping");
  CHECK_FALSE(stand.transport.gone.contains(client));
  stand.service->set_access(access({{{1001}, {}, {Role::agent}}}));
  CHECK(stand.transport.gone.contains(client));
  const proto::ClientId owner = stand.connect();
  CHECK(json::parse(stand.call(owner, "resource.stats-get").text())["journal-consumers"] == 0);
}

TEST_CASE("requests beyond the rate are refused, and a flood ends the connection") {
  Stand stand;
  config::Limits limits;
  limits.requests_per_second = 10;
  stand.service->set_limits(limits);
  const proto::ClientId client = stand.connect();
  const proto::ClientId other = stand.connect();
  const auto ping = [&](proto::ClientId from) {
    stand.request(from, "resource.ping");
    return stand.receive(from).errnum();
  };
  for (int i = 0; i < 10; ++i) CHECK(ping(client) == 0);
  CHECK(ping(client) == EBUSY);
  CHECK(ping(other) == 0);
  stand.uptime = steady_time(0.55);
  for (int i = 0; i < 4; ++i) CHECK(ping(client) == 0);
  CHECK(ping(client) == EBUSY);
  for (int i = 0; i < 9; ++i) CHECK(ping(client) == EBUSY);
  CHECK_FALSE(stand.transport.gone.contains(client));
  stand.request(client, "resource.ping");
  CHECK(stand.transport.gone.contains(client));
  CHECK(ping(other) == 0);
  const json stats = json::parse(stand.call(other, "resource.stats-get").text());
  CHECK(stats["limited-requests"] == 11);
  CHECK(stats["dropped-clients"] == 1);
}

TEST_CASE("requests that wait, streams and responses alike, are counted against their limit") {
  Stand stand;
  config::Limits limits;
  limits.outstanding_requests = 3;
  stand.service->set_limits(limits);
  const proto::ClientId client = stand.connect();
  const proto::ClientId other = stand.connect();
  const auto stream = stand.request(client, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive(client).errnum() == 0);
  stand.request(client, "resource.drain", {{"targets", "1"}});
  stand.request(client, "resource.status");
  CHECK(stand.silent(client));
  const auto refused = stand.request(client, "resource.drain", {{"targets", "2"}});
  const proto::Message refusal = stand.receive(client);
  CHECK(refusal.matchtag == refused);
  CHECK(refusal.errnum() == EBUSY);
  CHECK(stand.silent(client));
  // Another client has its own limit, and requests without a response are not counted.
  stand.request(other, "resource.drain", {{"targets", "3"}, {"reason", "disk"}});
  CHECK(stand.silent(other));
  stand.request(client, "resource.acquire-cancel", {{"matchtag", stream}}, noresponse);
  stand.settle();
  CHECK(stand.receive(other).errnum() == 0);
  const json drained = json::parse(stand.call(other, "resource.status").text())["drain"];
  CHECK(drained.contains("1"));
  CHECK_FALSE(drained.contains("2"));
  while (!stand.silent(client)) (void)stand.receive(client);
  CHECK(stand.call(client, "resource.drain", {{"targets", "2"}}).errnum() == 0);
}

TEST_CASE("one uid or key follows so many journals and no more, over whatever connections") {
  Stand stand;
  config::Limits limits;
  limits.journal_consumers = 2;
  stand.service->set_limits(limits);
  const auto follow = [&](proto::ClientId client) {
    const auto tag = stand.request(client, "resource.journal", json::object(), streaming);
    stand.settle();
    std::uint32_t errnum = 0;
    while (!stand.silent(client)) errnum = stand.receive(client).errnum();
    return std::pair{tag, errnum};
  };
  const proto::ClientId first = stand.connect(user(1001));
  const proto::ClientId second = stand.connect(user(1001));
  const auto [tag, errnum] = follow(first);
  CHECK(errnum == 0);
  CHECK(follow(second).second == 0);
  CHECK(follow(second).second == EBUSY);
  CHECK(follow(stand.connect(user(1002))).second == 0);
  stand.request(first, "resource.journal-cancel", {{"matchtag", tag}}, noresponse);
  CHECK(stand.receive(first).errnum() == ENODATA);
  CHECK(follow(second).second == 0);
  CHECK(follow(second).second == EBUSY);
  stand.disconnect(second);
  CHECK(follow(first).second == 0);
}

}  // namespace
}  // namespace resourced::daemon::test
