// The keeper of a Flux instance's module: the messages to the broker and to the next service when a service
// dies.
#include <cerrno>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "proto/local_frame.hpp"
#include "proto/message.hpp"
#include "relay_ends.hpp"

using namespace resourced;
using namespace resourced::flux::keeper;
using namespace resourced::relay_test;

namespace {

TEST_CASE("frames pass unchanged, both ways") {
  Module module;
  const Message ping = request("resource.ping", 7);
  module.from_broker(ping);
  const auto seen = module.service_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].mark.empty());
  CHECK(proto::encode_local_frame(seen[0].message) == proto::encode_local_frame(ping));
  const Message pong = proto::make_response(ping, proto::make_payload(std::string(100000, 'x')));
  module.from_service(pong);
  const auto answered = module.broker_sees();
  REQUIRE(answered.size() == 1);
  CHECK(proto::encode_local_frame(answered[0]) == proto::encode_local_frame(pong));
  CHECK(module.relay.open() == 0);
}

TEST_CASE("a route of any depth passes") {
  Module module;
  Message ping = request("resource.ping", 7);
  ping.routes.insert(ping.routes.begin(), 40, "hop");
  module.from_broker(ping);
  CHECK(module.relay.open() == 1);
  module.relay.for_service().clear();
  module.relay.service_ended();
  const std::string frame = proto::encode_local_frame(
      proto::make_error(ping, EHOSTUNREACH, "the resource service has ended before it answered"));
  CHECK(module.relay.for_broker() == frame);
}

TEST_CASE("a plain request that a dead service had in hand is answered EHOSTUNREACH to its client") {
  Module module;
  module.from_broker(request("resource.drain", 1, "one"));
  module.from_broker(request("resource.status", 1, "two"));
  module.from_service(proto::make_response(request("resource.status", 1, "two")));
  (void)module.broker_sees();
  module.relay.service_ended();
  const auto seen = module.broker_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].topic == "resource.drain");
  CHECK(seen[0].type == proto::MessageType::response);
  CHECK(seen[0].errnum() == EHOSTUNREACH);
  CHECK(seen[0].routes == std::vector<std::string>{"broker", "one"});
  CHECK(seen[0].userid == owner);
  CHECK(seen[0].rolemask == proto::role::owner);
  CHECK(module.relay.open() == 0);
}

TEST_CASE("what comes before the next service is there waits for it, and is in its hands from then on") {
  Module module;
  module.relay.service_ended();
  module.from_broker(request("resource.status", 1));
  module.from_broker(request("resource.acquire", 2, "sched", flag::streaming));
  module.from_broker(request("resource.get", 3, "gone"));
  Message disconnect = request("resource.disconnect", 0, "gone", flag::noresponse);
  module.from_broker(disconnect);
  CHECK(module.broker_sees().empty());
  CHECK(module.relay.for_service().empty());
  module.relay.service_started();
  const auto handed = module.service_sees();
  REQUIRE(handed.size() == 2);
  CHECK(handed[0].message.topic == "resource.status");
  CHECK(handed[1].message.topic == "resource.acquire");
  CHECK(handed[1].mark.empty());
  // It is unknown whether this service has answered before it died, so no other one answers.
  module.relay.service_ended();
  const auto seen = module.broker_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].topic == "resource.status");
  CHECK(seen[0].errnum() == EHOSTUNREACH);
}

TEST_CASE("only an owner's acquire or journal with the streaming flag is a stream") {
  Module module;
  const std::vector<Message> plain{
      request("resource.ping", 1, "one", flag::streaming),
      request("resource.acquire", 2, "one"),
      of_guest(request("resource.acquire", 1, "two", flag::streaming)),
      of_guest(request("resource.journal", 2, "two", flag::streaming)),
  };
  for (const Message& asked : plain) module.from_broker(asked);
  CHECK(module.relay.open() == plain.size());
  // Each of these requests ends with its first response, which has the flag of the request.
  module.from_service(proto::make_response(plain[0]));
  module.from_service(proto::make_response(plain[2]));
  CHECK(module.relay.open() == 2);
  (void)module.broker_sees();
  (void)module.service_sees();
  // The other requests are not passed to the next service.
  module.relay.service_ended();
  CHECK(module.broker_sees().size() == 2);
  CHECK(module.relay.open() == 0);
  module.relay.service_started();
  CHECK(module.service_sees().empty());
}

TEST_CASE("a stream is handed over as it was asked for, with the mark of its last whole response") {
  Module module;
  const Message acquire = request("resource.acquire", 3, "sched", flag::streaming, R"({"a":1})");
  const Message journal = request("resource.journal", 3, "cli", flag::streaming);
  module.from_broker(acquire);
  module.from_broker(journal);
  module.from_service(proto::make_response(acquire), "17");
  module.from_service(proto::make_response(acquire), "21");
  (void)module.broker_sees();
  (void)module.service_sees();
  module.restart();
  CHECK(module.broker_sees().empty());
  const auto handed = module.service_sees();
  REQUIRE(handed.size() == 2);
  CHECK(handed[0].mark == "21");
  CHECK(proto::encode_local_frame(handed[0].message) == proto::encode_local_frame(acquire));
  CHECK(handed[1].mark.empty());
  CHECK(handed[1].message.routes.back() == "cli");

  SUBCASE("unless it has ended") {
    module.from_service(proto::make_error(acquire, ECANCELED));
    module.restart();
    const auto left = module.service_sees();
    REQUIRE(left.size() == 1);
    CHECK(left[0].message.topic == "resource.journal");
  }
  SUBCASE("unless its client has gone") {
    module.from_broker(request("resource.disconnect", 0, "sched", flag::noresponse));
    (void)module.service_sees();
    module.from_service(proto::make_response(acquire), "22");
    CHECK(module.broker_sees().empty());
    module.restart();
    CHECK(module.service_sees().size() == 1);
  }
  SUBCASE("and still cancelled, if it was to be cancelled") {
    module.from_broker(request("resource.journal-cancel", 0, "cli", flag::noresponse, R"({"matchtag":3})"));
    module.from_broker(request("resource.journal-cancel", 0, "cli", flag::noresponse, R"({"matchtag":4})"));
    module.from_broker(request("resource.journal-cancel", 0, "cli", flag::noresponse, "nonsense"));
    (void)module.service_sees();
    module.restart();
    const auto again = module.service_sees();
    REQUIRE(again.size() == 3);
    CHECK(again[1].message.topic == "resource.journal");
    CHECK(again[2].message.topic == "resource.journal-cancel");
    CHECK(again[2].message.text() == R"({"matchtag":3})");
  }
}

TEST_CASE("a mark that comes without a response is stored and not relayed") {
  Module module;
  const Message acquire = request("resource.acquire", 3, "sched", flag::streaming);
  module.from_broker(acquire);
  (void)module.service_sees();
  module.from_service(proto::make_response(acquire), "first");
  CHECK(module.broker_sees().size() == 1);
  Message stored = proto::make_response(acquire);
  stored.flags |= flag::noresponse;
  stored.routes = {"sched"};
  module.from_service(stored, "second");
  CHECK(module.broker_sees().empty());
  CHECK(module.relay.open() == 1);
  // Nothing is stored for a stream that has ended.
  stored.matchtag = 4;
  module.from_service(stored, "third");
  CHECK(module.broker_sees().empty());
  module.restart();
  const auto handed = module.service_sees();
  REQUIRE(handed.size() == 1);
  CHECK(handed[0].mark == "second");
}

TEST_CASE("a guest cancels its own requests only") {
  Module module;
  module.from_broker(request("resource.journal", 3, "cli", flag::streaming));
  Message cancel =
      of_guest(request("resource.journal-cancel", 0, "cli", flag::noresponse, R"({"matchtag":3})"));
  module.from_broker(cancel);
  (void)module.service_sees();
  module.restart();
  CHECK(module.service_sees().size() == 1);
  cancel.userid = owner;
  module.from_broker(cancel);
  (void)module.service_sees();
  module.restart();
  CHECK(module.service_sees().size() == 2);
}

TEST_CASE("a guest's disconnect ends its own requests only") {
  Module module;
  module.from_broker(request("resource.acquire", 3, "sched", flag::streaming));
  Message disconnect = request("resource.disconnect", 0, "sched", flag::noresponse);
  disconnect.userid = guest;
  disconnect.rolemask = proto::role::user;
  module.from_broker(disconnect);
  CHECK(module.relay.open() == 1);
  disconnect.userid = owner;
  module.from_broker(disconnect);
  CHECK(module.relay.open() == 0);
}

TEST_CASE("answers to what a dead service had asked for do not reach the next one") {
  Module module;
  const auto own = [&](std::uint32_t number) {
    return proto::make_request("kvs.commit", std::uint32_t{module.relay.generation()} << 24U | number,
                               proto::make_payload("{}"));
  };
  const Message first = own(1);
  module.from_service(first);
  CHECK(module.broker_sees().size() == 1);
  module.restart();
  module.from_broker(proto::make_response(first));
  CHECK(module.service_sees().empty());
  const Message second = own(1);
  module.from_service(second);
  module.from_broker(proto::make_response(second));
  const auto seen = module.service_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].message.matchtag == second.matchtag);
}

TEST_CASE("the streams of a dead service end at the broker") {
  Module module;
  module.from_service(
      proto::make_request("groups.get", 1U << 24U, proto::make_payload("{}"), flag::streaming));
  module.from_service(proto::make_request("kvs.lookup", 1U << 24U | 1U, proto::make_payload("{}")));
  (void)module.broker_sees();
  module.relay.service_ended();
  const auto seen = module.broker_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].topic == "groups.disconnect");
  CHECK(seen[0].has(flag::noresponse));
  module.relay.service_started();
  module.relay.service_ended();
  CHECK(module.broker_sees().empty());
}

TEST_CASE(
    "a generation is never 0, which the keeper's own request has, nor again 1, which the first service has") {
  Module module;
  CHECK(module.relay.generation() == 1);
  for (int i = 0; i < 300; ++i) {
    module.restart();
    CHECK(module.relay.generation() > 1);
  }
  CHECK(module.broker_sees().empty());
}

TEST_CASE("a module that is asked to stop leaves in order") {
  Module module;
  const Message acquire = request("resource.acquire", 3, "sched", flag::streaming);
  module.from_broker(acquire);
  module.from_broker(request("resource.shutdown", 0, "broker", flag::noresponse));
  CHECK(module.relay.state() == State::stopping);
  const auto asked = module.service_sees();
  REQUIRE(asked.size() == 2);
  CHECK(asked[1].message.topic == "resource.shutdown");
  SUBCASE("after the service has answered all and ended") {
    module.from_service(proto::make_error(acquire, ECANCELED));
    CHECK(module.broker_sees().size() == 1);
    module.relay.service_ended();
    const auto said = module.broker_sees();
    REQUIRE(said.size() == 1);
    CHECK(said[0].text() == R"({"status":2})");
    CHECK_FALSE(said[0].has(flag::noresponse));
    CHECK(module.relay.state() == State::leaving);
    module.from_broker(proto::make_response(said[0]));
    const auto last = module.broker_sees();
    REQUIRE(last.size() == 1);
    CHECK(last[0].text() == R"({"status":3,"errnum":0})");
    CHECK(module.relay.state() == State::left);
  }
  SUBCASE("and what the service left open is answered ENOSYS") {
    module.relay.service_ended();
    const auto said = module.broker_sees();
    REQUIRE(said.size() == 1);
    module.from_broker(proto::make_response(said[0]));
    const auto last = module.broker_sees();
    REQUIRE(last.size() == 2);
    CHECK(last[0].topic == "resource.acquire");
    CHECK(last[0].errnum() == ENOSYS);
    CHECK(last[1].text() == R"({"status":3,"errnum":0})");
  }
}

TEST_CASE("a guest cannot stop the module") {
  Module module;
  Message shutdown = request("resource.shutdown", 5, "client");
  shutdown.userid = guest;
  shutdown.rolemask = proto::role::user;
  module.from_broker(shutdown);
  CHECK(module.relay.state() == State::running);
  module.from_service(proto::make_error(shutdown, EPERM));
  CHECK(module.broker_sees().at(0).errnum() == EPERM);
  module.relay.service_ended();
  module.from_broker(shutdown);
  CHECK(module.relay.state() == State::running);
}

TEST_CASE("the reports of other ranks are there for each service") {
  Module module;
  const Message report = request("resource.topo-reduce", 0, "rank3", flag::noresponse);
  module.from_broker(report);
  CHECK(module.service_sees().size() == 1);
  module.relay.service_ended();
  const Message late = request("resource.topo-reduce", 0, "rank4", flag::noresponse);
  module.from_broker(late);
  module.relay.service_started();
  const auto seen = module.service_sees();
  REQUIRE(seen.size() == 2);
  CHECK(proto::encode_local_frame(seen[0].message) == proto::encode_local_frame(report));
  CHECK(proto::encode_local_frame(seen[1].message) == proto::encode_local_frame(late));
}

TEST_CASE("of the reports of a rank, the last one counts") {
  Module module;
  const auto report = [](const std::string& origin, const std::string& payload) {
    return request("resource.topo-reduce", 0, origin, flag::noresponse, payload);
  };
  constexpr int most = 4096;
  for (int i = 0; i <= most; ++i) module.from_broker(report("rank3", std::to_string(i)));
  module.from_broker(report("rank4", "{}"));
  (void)module.service_sees();
  module.restart();
  const auto seen = module.service_sees();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].message.text() == std::to_string(most));
  CHECK(seen[1].message.text() == "{}");
  for (int i = 0; i < most; ++i) module.from_broker(report("origin" + std::to_string(i), "{}"));
  (void)module.service_sees();
  module.restart();
  CHECK(module.service_sees().size() == most);
}

TEST_CASE("a module that is asked to stop while no service runs leaves at once") {
  Module module;
  module.relay.service_ended();
  module.from_broker(request("resource.shutdown", 0, "broker", flag::noresponse));
  CHECK(module.relay.state() == State::leaving);
  CHECK(module.broker_sees().at(0).text() == R"({"status":2})");
}

TEST_CASE("a service that cannot start fails the load of the module") {
  Relay relay;
  relay.service_started();
  std::string errnum = "5";
  SUBCASE("with the errno that it names") {
    relay.from_service({"failed 22", {}});
    errnum = "22";
  }
  SUBCASE("with EIO if it just dies") {}
  relay.service_ended();
  auto said = messages(relay.for_broker());
  REQUIRE(said.size() == 1);
  CHECK(said[0].text() == R"({"status":2})");
  relay.from_broker(proto::encode_local_frame(proto::make_response(said[0])));
  said = messages(relay.for_broker());
  REQUIRE(said.size() == 1);
  CHECK(said[0].text() == R"({"status":3,"errnum":)" + errnum + "}");
  CHECK(relay.state() == State::left);
}

TEST_CASE("a service that is started again does not tell the broker once more") {
  Module module;
  module.restart();
  CHECK(module.broker_sees().empty());
}

}  // namespace
