// The keeper of a Flux instance's module: the messages to the broker and to the next service when a service
// dies.
#include "flux/keeper/relay.hpp"

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "proto/local_frame.hpp"
#include "proto/message.hpp"

using namespace resourced;
using namespace resourced::flux::keeper;
using namespace resourced::flux::link;
using proto::Message;
namespace flag = proto::flag;

namespace {

constexpr std::uint32_t owner = 1000;
constexpr std::uint32_t guest = 2000;

struct Told {
  std::string mark;
  Message message;
};

std::vector<Message> messages(std::string& bytes) {
  std::vector<Message> all;
  proto::LocalFrameDecoder decoder;
  decoder.feed(bytes);
  while (const auto parts = decoder.next()) all.push_back(proto::from_parts(*parts));
  CHECK(decoder.pending() == 0);
  bytes.clear();
  return all;
}

std::vector<Told> told(std::string& bytes) {
  std::vector<Told> all;
  LinkReader reader;
  reader.feed(bytes);
  while (const auto message = reader.next()) {
    std::string frame(message->frame);
    all.push_back({std::string(message->mark), messages(frame).at(0)});
  }
  bytes.clear();
  return all;
}

/// A request as the broker delivers it: its own route on top, the client's below.
Message request(const std::string& topic, std::uint32_t matchtag, const std::string& client = "client",
                std::uint8_t flags = 0, std::string payload = "{}") {
  Message message = proto::make_request(topic, matchtag, proto::make_payload(std::move(payload)), flags);
  message.userid = owner;
  message.rolemask = proto::role::owner;
  message.routes = {"broker", client};
  return message;
}

Message of_guest(Message message) {
  message.userid = guest;
  message.rolemask = proto::role::user;
  return message;
}

/// A module whose service runs.
struct Module {
  Module() {
    relay.service_started();
    say("running");
    const auto status = messages(relay.for_broker());
    REQUIRE(status.size() == 1);
    CHECK(status[0].topic == "module.status");
    CHECK(status[0].text() == R"({"status":1})");
    CHECK(status[0].has(flag::noresponse));
  }

  void say(const std::string& mark) { relay.from_service({mark, {}}); }
  void from_broker(const Message& message) { relay.from_broker(proto::encode_local_frame(message)); }
  void from_service(const Message& message, const std::string& mark = {}) {
    const std::string frame = proto::encode_local_frame(message);
    relay.from_service({mark, frame});
  }
  std::vector<Message> broker_sees() { return messages(relay.for_broker()); }
  std::vector<Told> service_sees() { return told(relay.for_service()); }
  void restart() {
    relay.service_ended();
    relay.service_started();
    say("running");
  }

  Relay relay;
};

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
  // Whether this service has answered is unknown when it dies, so nobody else answers.
  module.relay.service_ended();
  const auto seen = module.broker_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].topic == "resource.status");
  CHECK(seen[0].errnum() == EHOSTUNREACH);
}

TEST_CASE("only so many requests wait for the next service") {
  Module module;
  module.relay.service_ended();
  constexpr std::uint32_t most = 1024;
  for (std::uint32_t tag = 1; tag <= most; ++tag) module.from_broker(request("resource.status", tag));
  CHECK(module.broker_sees().empty());
  module.from_broker(request("resource.status", most + 1));
  const auto seen = module.broker_sees();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].matchtag == most + 1);
  CHECK(seen[0].errnum() == EHOSTUNREACH);
  module.relay.service_started();
  CHECK(module.service_sees().size() == most);
}

TEST_CASE("the bytes that wait for the next service are bounded, and are free again once it has them") {
  Module module;
  constexpr std::size_t most = std::size_t{16} << 20U;
  const Message large = request("resource.status", 1, "a", 0, std::string(most - 1024, 'x'));
  for (int i = 0; i < 2; ++i) {
    module.relay.service_ended();
    CHECK(module.broker_sees().size() == static_cast<std::size_t>(i));
    module.from_broker(large);
    CHECK(module.broker_sees().empty());
    module.from_broker(request("resource.status", 2, "a", 0, std::string(1024, 'x')));
    auto refused = module.broker_sees();
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].matchtag == 2);
    CHECK(refused[0].errnum() == EHOSTUNREACH);
    module.from_broker(request("resource.status", 2, "a"));
    module.from_broker(request("resource.disconnect", 0, "a", flag::noresponse));
    module.from_broker(large);
    CHECK(module.broker_sees().empty());
    module.relay.service_started();
    CHECK(module.service_sees().size() == 1);
  }
}

TEST_CASE("requests of guests wait up to a number and a size of their own") {
  Module module;
  module.relay.service_ended();
  constexpr std::size_t most_bytes = 65536;
  module.from_broker(of_guest(request("resource.status", 1, "a", 0, std::string(most_bytes, 'x'))));
  auto refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].errnum() == EHOSTUNREACH);
  constexpr std::uint32_t most = 256;
  for (std::uint32_t tag = 1; tag <= most; ++tag) {
    module.from_broker(of_guest(request("resource.status", tag, "a", tag % 2 == 0 ? flag::streaming : 0)));
  }
  CHECK(module.broker_sees().empty());
  module.from_broker(of_guest(request("resource.status", most + 1, "b")));
  refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].errnum() == EHOSTUNREACH);
  module.from_broker(request("resource.status", 1, "owner", 0, std::string(most_bytes, 'x')));
  module.from_broker(of_guest(request("resource.disconnect", 0, "a", flag::noresponse)));
  module.from_broker(of_guest(request("resource.status", most + 1, "b")));
  CHECK(module.broker_sees().empty());
  CHECK(module.relay.open() == 2);
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
  // Each is over with its first response, which has the flag as the request has.
  module.from_service(proto::make_response(plain[0]));
  module.from_service(proto::make_response(plain[2]));
  CHECK(module.relay.open() == 2);
  (void)module.broker_sees();
  (void)module.service_sees();
  // And the others are not passed to the next service.
  module.relay.service_ended();
  CHECK(module.broker_sees().size() == 2);
  CHECK(module.relay.open() == 0);
  module.relay.service_started();
  CHECK(module.service_sees().empty());
}

TEST_CASE("an origin has up to 1024 streams") {
  Module module;
  constexpr std::uint32_t most = 1024;
  const auto journal = [](std::uint32_t tag, const std::string& client = "cli") {
    return request("resource.journal", tag, client, flag::streaming);
  };
  for (std::uint32_t tag = 1; tag <= most; ++tag) module.from_broker(journal(tag));
  CHECK(module.broker_sees().empty());
  (void)module.service_sees();
  module.from_broker(journal(most + 1));
  const auto refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].matchtag == most + 1);
  CHECK(refused[0].errnum() == EBUSY);
  CHECK(module.service_sees().empty());
  // Others have their own number, and one that ends makes room.
  module.from_broker(journal(1, "other"));
  module.from_service(proto::make_error(journal(7), ENODATA));
  module.from_broker(journal(most + 1));
  CHECK(module.broker_sees().size() == 1);
  CHECK(module.service_sees().size() == 2);
  CHECK(module.relay.open() == most + 1);
}

TEST_CASE("another user who names the same origin has matchtags of its own") {
  Module module;
  const Message journal = request("resource.journal", 3, "cli", flag::streaming);
  const Message forged = of_guest(request("resource.status", 3, "cli"));
  module.from_broker(forged);
  module.from_broker(journal);
  CHECK(module.service_sees().size() == 2);
  module.from_service(proto::make_response(forged));
  module.from_service(proto::make_response(journal), "5");
  CHECK(module.broker_sees().size() == 2);
  module.restart();
  const auto handed = module.service_sees();
  REQUIRE(handed.size() == 1);
  CHECK(handed[0].mark == "5");
}

TEST_CASE("a matchtag that is in use is refused, and the request that uses it stays") {
  Module module;
  const Message journal = request("resource.journal", 3, "cli", flag::streaming);
  module.from_broker(journal);
  module.from_service(proto::make_response(journal), "5");
  (void)module.broker_sees();
  (void)module.service_sees();
  module.from_broker(request("resource.status", 3, "cli"));
  const auto refused = module.broker_sees();
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].topic == "resource.status");
  CHECK(refused[0].errnum() == EPROTO);
  CHECK(refused[0].text() == "matchtag is in use");
  CHECK(module.service_sees().empty());
  module.restart();
  const auto handed = module.service_sees();
  REQUIRE(handed.size() == 1);
  CHECK(handed[0].mark == "5");
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

TEST_CASE("a cancellation is not stored for a request that no other service gets, nor if it is large") {
  Module module;
  const std::string large = R"({"matchtag":3,"x":")" + std::string(65536, 'x') + R"("})";
  module.relay.service_ended();
  module.from_broker(of_guest(request("resource.status", 3, "cli")));
  module.from_broker(of_guest(request("resource.status-cancel", 0, "cli", flag::noresponse, large)));
  module.relay.service_started();
  CHECK(module.service_sees().size() == 1);
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

TEST_CASE("a line for the broker's log is as RFC 5424 has it") {
  using namespace std::chrono;
  const auto time = system_clock::time_point(seconds(1795334400) + microseconds(1));
  const Message line = make_log_line(Severity::error, 3, 17, time, "resourced has ended");
  CHECK(line.topic == "log.append");
  CHECK(line.has(flag::noresponse));
  CHECK(*line.payload == "<24>1 2026-11-22T08:00:00.000001Z 3 resource 17 - - resourced has ended");
}

TEST_CASE("a matchtag has its generation, however many there were before") {
  for (const std::uint32_t number : {1U, 0xFFFFFFU, 0x1000001U, 0xFFFFFFFFU}) {
    CHECK(generation_of(matchtag_of(7, number)) == 7);
    CHECK(generation_of(matchtag_of(255, number)) == 255);
  }
  CHECK(matchtag_of(2, 3) == 0x02000003U);
}

TEST_CASE("bytes come in any portions") {
  const std::string first = proto::encode_local_frame(request("resource.ping", 1));
  const std::string second =
      proto::encode_local_frame(request("resource.status", 2, "x", 0, std::string(70000, 'x')));
  std::string link;
  append_link_message(link, {"mark", first});
  append_link_message(link, {"running", {}});
  append_link_message(link, {{}, second});
  for (const std::size_t portion : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, link.size()}) {
    FrameReader frames;
    LinkReader messages;
    std::vector<std::string> got;
    for (std::size_t at = 0; at < first.size() + second.size(); at += portion) {
      frames.feed((first + second).substr(at, portion));
      while (const auto frame = frames.next()) got.emplace_back(*frame);
    }
    CHECK(got == std::vector<std::string>{first, second});
    got.clear();
    for (std::size_t at = 0; at < link.size(); at += portion) {
      messages.feed(std::string_view(link).substr(at, portion));
      while (const auto message = messages.next())
        got.push_back(std::string(message->mark) + std::string(message->frame));
    }
    CHECK(got == std::vector<std::string>{"mark" + first, "running", second});
  }
}

std::string header_of(std::size_t length) {
  std::string header("\x12\x00\xee\xff", 4);
  proto::append_u32(header, static_cast<std::uint32_t>(length));
  return header;
}

TEST_CASE("a frame that is too long is told once and passed over by its length, in any portions") {
  const std::string ping = proto::encode_local_frame(request("resource.ping", 1));
  constexpr std::size_t length = max_frame + 1;
  FrameReader reader;
  reader.feed(ping + header_of(length) + "abc");
  CHECK(reader.next() == ping);
  try {
    (void)reader.next();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.errnum() == EMSGSIZE);
  }
  CHECK_FALSE(reader.next().has_value());
  const std::string part(std::size_t{1} << 20U, '\0');
  std::size_t left = length - 3;
  for (; left > part.size(); left -= part.size()) {
    reader.feed(part);
    REQUIRE_FALSE(reader.next().has_value());
  }
  reader.feed(part.substr(0, left) + ping);
  CHECK(reader.next() == ping);
  CHECK_FALSE(reader.next().has_value());
}

TEST_CASE("the link has room for the longest frame with its header") {
  const auto length = [](std::size_t size) {
    std::string text;
    proto::append_u32(text, static_cast<std::uint32_t>(size));
    return text;
  };
  constexpr std::size_t most = max_frame + proto::local_header_size;
  FrameReader frames;
  frames.feed(header_of(max_frame));
  CHECK_FALSE(frames.next().has_value());
  LinkReader link;
  link.feed(length(0) + length(most));
  CHECK_FALSE(link.next().has_value());
  LinkReader longer;
  longer.feed(length(0) + length(most + 1));
  CHECK_THROWS_AS((void)longer.next(), Error);
}

TEST_CASE("what is no frame is an error, and no read beyond it") {
  FrameReader reader;
  reader.feed("GET / HTTP/1.1");
  CHECK_THROWS_AS((void)reader.next(), Error);
  const std::string whole = proto::encode_local_frame(request("resource.ping", 1));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // Like a frame of the wrong length, whose last bytes are not PROTO.
    const std::string cut(whole.substr(0, size));
    CHECK_THROWS_AS((void)read_head(cut), Error);
  }
  LinkReader link;
  link.feed(std::string("\x7f\xff\xff\xff", 4));
  CHECK_THROWS_AS((void)link.next(), Error);
}

}  // namespace
