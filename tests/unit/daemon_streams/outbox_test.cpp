// The guarantee of the outbox: no message is sent before its event is on disk, and messages keep their order.
#include "daemon/streams/outbox.hpp"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {
namespace {

using streams::Response;
using streams::Update;

constexpr proto::ClientId reader{1};
constexpr proto::ClientId other{2};

proto::Message response_of(const std::string& text) {
  return proto::make_response(proto::make_request("resource.status", 1), proto::make_payload(text));
}

/// An outbox with two clients, and the messages that it has sent, in their order.
struct Box final : streams::Outbox::Listener {
  Box() {
    for (const proto::ClientId client : {reader, other}) clients.add(transport, client, {}, {});
  }
  void on_update(log::Sequence after, const Update& change) override {
    updates.emplace_back(after, change.holder);
  }
  void on_read(const streams::Read& read) override { reads.push_back(read.from); }
  void on_unreachable(proto::ClientId client) override { gone.push_back(client); }
  void respond(log::Sequence after, const std::string& text, proto::ClientId to = reader) {
    outbox.push(after, Response{to, response_of(text)}, {});
  }
  void update(log::Sequence after, engine::HolderId holder) { outbox.push(after, Update{holder, {}}); }
  std::vector<std::string> sent_to(proto::ClientId client) {
    std::vector<std::string> texts;
    for (const proto::Message& message : transport.sent[client]) texts.emplace_back(message.text());
    return texts;
  }
  std::size_t waiting(proto::ClientId client) { return clients.find(client)->waiting; }

  FakeTransport transport;
  peers::Clients clients;
  std::vector<std::pair<log::Sequence, engine::HolderId>> updates;
  std::vector<proto::ClientId> gone;
  std::vector<proto::ClientId> reads;
  streams::Outbox outbox{clients, *this};
};

using Texts = std::vector<std::string>;

TEST_CASE("outbox: the longest wait of a response for a commit is known, with its topic") {
  Box box;
  const streams::LongestWait& waits = box.outbox.waits();
  const auto respond = [&](log::Sequence after, const char* topic, double since) {
    box.outbox.push(after, Response{reader, proto::make_response(proto::make_request(topic, 1))},
                    steady_time(since));
  };
  respond(0, "resource.get", 1);
  box.update(1, 1);
  box.outbox.committed(1, steady_time(1000));
  CHECK(waits.longest().topic.empty());
  CHECK(waits.recent(steady_time(1000)) == Seconds(0));

  respond(2, "resource.drain", 1000);
  respond(2, "resource.ping", 1000.25);
  respond(3, "resource.status", 1000.5);
  box.outbox.committed(2, steady_time(1001));
  CHECK(waits.longest().topic == "resource.drain");
  CHECK(waits.longest().time == Seconds(1));
  box.outbox.committed(3, steady_time(1001));
  CHECK(waits.longest().topic == "resource.drain");

  // The recent longest wait, which Prometheus reads, falls again after a minute or more.
  CHECK(waits.recent(steady_time(1060)) == Seconds(1));
  respond(4, "resource.undrain", 1070);
  box.outbox.committed(4, steady_time(1070.5));
  CHECK(waits.recent(steady_time(1080)) == Seconds(1));
  CHECK(waits.recent(steady_time(1135)) == Seconds(0.5));
  CHECK(waits.recent(steady_time(1195)) == Seconds(0));
  CHECK(waits.longest().time == Seconds(1));
  box.outbox.waits().clear();
  CHECK(waits.longest().time == Seconds(0));
}

TEST_CASE("outbox: a response leaves with the commit of its event, and at once if that is on disk") {
  Box box;
  box.respond(0, "nothing has happened");
  CHECK(box.sent_to(reader) == Texts{"nothing has happened"});
  box.respond(2, "second");
  CHECK_FALSE(box.outbox.empty());
  box.outbox.committed(1, {});
  CHECK(box.sent_to(reader).size() == 1);
  box.outbox.committed(2, {});
  CHECK(box.sent_to(reader) == Texts{"nothing has happened", "second"});
  CHECK(box.outbox.empty());
  box.respond(1, "of an earlier event");
  CHECK(box.sent_to(reader).size() == 3);
}

TEST_CASE("outbox: a commit lets out what waits for it, in order, and keeps the rest") {
  Box box;
  box.respond(1, "a");
  box.update(2, 7);
  box.respond(2, "b", other);
  box.respond(3, "c");
  CHECK(box.sent_to(reader).empty());
  box.outbox.committed(2, {});
  CHECK(box.sent_to(reader) == Texts{"a"});
  CHECK(box.updates == std::vector<std::pair<log::Sequence, engine::HolderId>>{{2, 7}});
  CHECK(box.sent_to(other) == Texts{"b"});
  box.outbox.committed(3, {});
  CHECK(box.sent_to(reader) == Texts{"a", "c"});
}

TEST_CASE("outbox: responses that wait count for their client until they leave") {
  Box box;
  box.respond(1, "a");
  box.respond(1, "b");
  box.respond(1, "c", other);
  CHECK(box.waiting(reader) == 2);
  CHECK(box.waiting(other) == 1);
  box.outbox.committed(1, {});
  CHECK(box.waiting(reader) == 0);
  CHECK(box.waiting(other) == 0);
  box.respond(1, "d");
  CHECK(box.waiting(reader) == 0);
}

TEST_CASE("outbox: a client that is gone when its response leaves is told of, once") {
  Box box;
  box.transport.gone.insert(reader);
  box.respond(1, "a");
  CHECK(box.gone.empty());
  box.outbox.committed(1, {});
  CHECK(box.gone == std::vector{reader});
  CHECK(box.clients.find(reader) == nullptr);
}

TEST_CASE("outbox: a response waits for room, and flush() sends it") {
  Box box;
  box.transport.full.insert(reader);
  box.respond(0, "a");
  CHECK(box.sent_to(reader).empty());
  box.outbox.flush();
  CHECK(box.sent_to(reader).empty());
  box.transport.full.clear();
  box.outbox.flush();
  CHECK(box.sent_to(reader) == Texts{"a"});
  SUBCASE("a client that is gone meanwhile is told of") {
    box.transport.full.insert(reader);
    box.respond(0, "b");
    box.transport.full.clear();
    box.transport.gone.insert(reader);
    box.outbox.flush();
    CHECK(box.gone == std::vector{reader});
  }
}

TEST_CASE("outbox: when the store fails, its error takes the place of what waits, and updates are dropped") {
  Box box;
  box.respond(1, "a");
  box.update(1, 7);
  box.respond(2, "b", other);
  box.outbox.abandon(Error(EIO, "the disk is full"));
  for (const proto::ClientId client : {reader, other}) {
    REQUIRE(box.transport.sent[client].size() == 1);
    CHECK(box.transport.sent[client].front().errnum() == EIO);
    CHECK(box.transport.sent[client].front().text() == "the disk is full");
  }
  CHECK(box.updates.empty());
  CHECK(box.outbox.empty());
}

TEST_CASE("outbox: a stream sends now or not at all, and its last message waits for room") {
  Box box;
  box.outbox.committed(3, {});
  CHECK(box.outbox.offer(3, reader, response_of("a")) == transport::SendResult::sent);
  box.transport.full.insert(reader);
  CHECK(box.outbox.offer(3, reader, response_of("b")) == transport::SendResult::full);
  box.outbox.offer_last(3, reader, response_of("c"));
  box.transport.full.clear();
  // While its last message waits for room, a stream sends no other.
  CHECK(box.outbox.offer(3, reader, response_of("d")) == transport::SendResult::full);
  box.outbox.flush();
  CHECK(box.sent_to(reader) == Texts{"a", "c"});
}

TEST_CASE("outbox: a response that tells nothing of the state does not wait for the disk") {
  Box box;
  box.respond(1, "a");
  CHECK(box.outbox.answer_at_once(reader, response_of("too many requests")));
  CHECK(box.sent_to(reader) == Texts{"too many requests"});
  box.transport.gone.insert(reader);
  CHECK_FALSE(box.outbox.answer_at_once(reader, response_of("too many requests")));
}

TEST_CASE("outbox: a request waits for its event like a response, and gets the error of a log that fails") {
  Box box;
  const auto read = [&](log::Sequence after) {
    box.outbox.push(after, streams::Read{reader, proto::make_request("resource.status", 1)}, steady_time(1));
  };
  read(1);
  read(2);
  proto::Message unanswered = proto::make_request("resource.status", 2);
  unanswered.flags |= proto::flag::noresponse;
  box.outbox.push(2, streams::Read{reader, unanswered}, steady_time(1));
  CHECK(box.waiting(reader) == 3);
  CHECK(box.reads.empty());
  box.outbox.committed(1, steady_time(3));
  CHECK(box.reads == std::vector{reader});
  CHECK(box.waiting(reader) == 2);
  CHECK(box.outbox.waits().longest().time == Seconds(2));
  box.outbox.abandon(Error(EIO, "the disk is gone"));
  CHECK(box.reads.size() == 1);
  CHECK(box.sent_to(reader) == Texts{"the disk is gone"});
}

}  // namespace
}  // namespace resourced::daemon::test
