// The guarantees of the service to its clients, with commits controlled by the test.
#include <doctest/doctest.h>

#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using nlohmann::json;

TEST_CASE("no message tells of a change that is not on disk, and a status shows the state on disk") {
  Stand stand;
  const proto::ClientId scheduler = stand.connect();
  const proto::ClientId admin = stand.connect();
  const proto::ClientId reader = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  CHECK(stand.receive_json(scheduler)["up"] == "0-7");

  stand.request(admin, "resource.drain", {{"targets", "2"}});
  stand.request(reader, "resource.status");
  // The service learns of the commit only when the loop handles it.
  CHECK(stand.silent(admin));
  CHECK(stand.silent(scheduler));
  CHECK(stand.receive_json(reader)["drain"].empty());
  stand.settle();
  CHECK(stand.receive(admin).errnum() == 0);
  CHECK(stand.receive_json(scheduler) == json{{"down", "2"}});
  CHECK(json::parse(stand.call(reader, "resource.status").text())["drain"].contains("2"));
}

TEST_CASE("what was answered is there after a restart") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  CHECK(stand.call(admin, "resource.drain", {{"targets", "1-2"}, {"reason", "dimm"}}).errnum() == 0);
  stand.now = 1005;
  CHECK(stand.call(admin, "resource.undrain", {{"targets", "n1"}}).errnum() == 0);
  CHECK(stand.call(admin, "resource.property", {{"op", "add"}, {"name", "big"}, {"targets", "3"}}).errnum() ==
        0);
  CHECK(stand.call(admin, "resource.expiration", {{"expiration", 5000}}).errnum() == 0);
  CHECK(stand.call(admin, "resource.shrink", {{"targets", "7"}}).errnum() == 0);
  stand.restart();
  const proto::ClientId reader = stand.connect();
  const json status = json::parse(stand.call(reader, "resource.status").text());
  CHECK(status["drain"] == json{{"2", {{"timestamp", 1000}, {"reason", "dimm"}, {"by", {{"userid", 0}}}}}});
  CHECK(status["online"] == "0-6");
  CHECK(status["R"]["execution"]["properties"] == json{{"big", "3"}});
  CHECK(status["R"]["execution"]["expiration"] == 5000);
}

TEST_CASE("a scheduler whose pipe is full is told one net change when there is room") {
  Stand stand;
  const proto::ClientId scheduler = stand.connect();
  const proto::ClientId admin = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  (void)stand.receive(scheduler);
  stand.transport.full.insert(scheduler);
  for (int i = 0; i < 50; ++i) {
    CHECK(stand.call(admin, "resource.drain", {{"targets", "0-3"}}).errnum() == 0);
    CHECK(stand.call(admin, "resource.undrain", {{"targets", "0-2"}}).errnum() == 0);
    CHECK(stand.call(admin, "resource.undrain", {{"targets", "3"}}).errnum() == 0);
  }
  CHECK(stand.call(admin, "resource.drain", {{"targets", "5"}}).errnum() == 0);
  CHECK(stand.silent(scheduler));
  stand.transport.full.clear();
  stand.service->on_writable();
  CHECK(stand.receive_json(scheduler) == json{{"down", "5"}});
  CHECK(stand.silent(scheduler));
}

TEST_CASE("a client that does not read its responses is dropped once too many wait") {
  Stand stand;
  const proto::ClientId reader = stand.connect();
  stand.transport.full.insert(reader);
  for (std::size_t i = 0; i <= peers::Clients::max_backlog; ++i) stand.request(reader, "resource.ping");
  CHECK(stand.transport.gone.contains(reader));
}

TEST_CASE("responses keep their order through a full pipe") {
  Stand stand;
  const proto::ClientId reader = stand.connect();
  stand.transport.full.insert(reader);
  const auto first = stand.request(reader, "resource.ping");
  const auto second = stand.request(reader, "resource.ping");
  stand.transport.full.clear();
  const auto third = stand.request(reader, "resource.ping");
  stand.service->on_writable();
  CHECK(stand.receive(reader).matchtag == first);
  CHECK(stand.receive(reader).matchtag == second);
  CHECK(stand.receive(reader).matchtag == third);
}

TEST_CASE("the resources are free again when their holder is gone, disconnects or cancels") {
  Stand stand;
  const proto::ClientId scheduler = stand.connect();
  const proto::ClientId other = stand.connect();
  const auto held = [&] {
    stand.request(other, "resource.acquire", nullptr, streaming);
    const auto response = stand.receive(other);
    if (response.errnum() == 0) stand.request(other, "resource.disconnect", nullptr, proto::flag::noresponse);
    return response.errnum() == EBUSY;
  };
  const auto acquire = [&](proto::ClientId client) {
    const auto tag = stand.request(client, "resource.acquire", nullptr, streaming);
    CHECK(stand.receive(client).errnum() == 0);
    return tag;
  };
  const auto tag = acquire(scheduler);
  CHECK(held());
  stand.request(scheduler, "resource.acquire-cancel", {{"matchtag", tag}}, proto::flag::noresponse);
  CHECK(stand.receive(scheduler).errnum() == ECANCELED);
  CHECK_FALSE(held());
  acquire(scheduler);
  CHECK(held());
  stand.request(scheduler, "resource.disconnect", nullptr, proto::flag::noresponse);
  CHECK(stand.silent(scheduler));
  CHECK_FALSE(held());
  acquire(scheduler);
  stand.disconnect(scheduler);
  CHECK_FALSE(held());
}

TEST_CASE("a cancellation ends a request of its own client only") {
  Stand stand;
  const proto::ClientId scheduler = stand.connect();
  const proto::ClientId stranger = stand.connect();
  const auto tag = stand.request(scheduler, "resource.acquire", nullptr, streaming);
  (void)stand.receive(scheduler);
  stand.request(stranger, "resource.acquire-cancel", {{"matchtag", tag}}, proto::flag::noresponse);
  CHECK(stand.silent(scheduler));
  CHECK(stand.silent(stranger));
}

TEST_CASE("a request with the matchtag of an open stream is refused and does nothing") {
  Stand stand;
  const proto::ClientId scheduler = stand.connect();
  const auto tag = stand.request(scheduler, "resource.acquire", nullptr, streaming);
  (void)stand.receive(scheduler);
  const auto drain = [&](proto::ClientId client, std::uint8_t flags) {
    const auto payload = proto::make_payload(R"({"targets":"1"})");
    stand.service->on_message(client, proto::make_request("resource.drain", tag, payload, flags));
    stand.settle();
  };
  drain(scheduler, 0);
  const proto::Message refusal = stand.receive(scheduler);
  CHECK(refusal.errnum() == EPROTO);
  CHECK(refusal.text() == "resource.drain: matchtag 1 is in use");
  CHECK(stand.silent(scheduler));
  // The stream stays, and another client has matchtags of its own.
  const proto::ClientId admin = stand.connect();
  drain(admin, 0);
  CHECK(stand.receive(admin).errnum() == 0);
  CHECK(stand.receive_json(scheduler) == json{{"down", "1"}});
  // A request without a response needs no matchtag of its own.
  drain(scheduler, proto::flag::noresponse);
  CHECK(stand.silent(scheduler));
}

TEST_CASE("a request that wants no response gets none, whatever becomes of it") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  stand.request(admin, "resource.drain", {{"targets", "1"}}, proto::flag::noresponse);
  stand.request(admin, "resource.drain", {{"targets", "99"}}, proto::flag::noresponse);
  stand.request(admin, "no.such", nullptr, proto::flag::noresponse);
  stand.settle();
  CHECK(stand.silent(admin));
  CHECK(json::parse(stand.call(admin, "resource.status").text())["drain"].contains("1"));
}

TEST_CASE("the events of a clock that was set back stay in order") {
  Stand stand;
  const proto::ClientId admin = stand.connect();
  CHECK(stand.call(admin, "resource.drain", {{"targets", "1"}}).errnum() == 0);
  stand.now = 10;
  CHECK(stand.call(admin, "resource.drain", {{"targets", "2"}}).errnum() == 0);
  stand.restart();
  const proto::ClientId reader = stand.connect();
  const json drains = json::parse(stand.call(reader, "resource.status").text())["drain"];
  CHECK(drains == json{{"1-2", {{"timestamp", 1000}, {"reason", ""}, {"by", {{"userid", 0}}}}}});
}

TEST_CASE("muted holders hear nothing more") {
  Stand stand;
  const proto::ClientId scheduler = stand.connect();
  const proto::ClientId admin = stand.connect();
  stand.request(scheduler, "resource.acquire", nullptr, streaming);
  (void)stand.receive(scheduler);
  CHECK(stand.call(admin, "resource.acquire-mute").errnum() == 0);
  CHECK(stand.call(admin, "resource.drain", {{"targets", "1"}}).errnum() == 0);
  CHECK(stand.silent(scheduler));
}

}  // namespace
}  // namespace resourced::daemon::test
