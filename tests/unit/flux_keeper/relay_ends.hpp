// A keeper's relay with both ends: the messages that the broker and the service see.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "flux/keeper/relay.hpp"
#include "flux/link/frames.hpp"
#include "proto/local_frame.hpp"
#include "proto/message.hpp"

namespace resourced::relay_test {

using flux::keeper::Relay;
using flux::link::LinkReader;
using proto::Message;
namespace flag = proto::flag;

inline constexpr std::uint32_t owner = 1000;
inline constexpr std::uint32_t guest = 2000;

struct Told {
  std::string mark;
  Message message;
};

inline std::vector<Message> messages(std::string& bytes) {
  std::vector<Message> all;
  proto::LocalFrameDecoder decoder;
  decoder.feed(bytes);
  while (const auto parts = decoder.next()) all.push_back(proto::from_parts(*parts));
  CHECK(decoder.pending() == 0);
  bytes.clear();
  return all;
}

inline std::vector<Told> told(std::string& bytes) {
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

/// A request as the broker delivers it, with the broker's own route on top of the client's.
inline Message request(const std::string& topic, std::uint32_t matchtag, const std::string& client = "client",
                       std::uint8_t flags = 0, std::string payload = "{}") {
  Message message = proto::make_request(topic, matchtag, proto::make_payload(std::move(payload)), flags);
  message.userid = owner;
  message.rolemask = proto::role::owner;
  message.routes = {"broker", client};
  return message;
}

inline Message of_guest(Message message) {
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

}  // namespace resourced::relay_test
