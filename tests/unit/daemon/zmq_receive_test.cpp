#include "daemon/transport/zmq_receive.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "daemon/transport/zmq_connections.hpp"

namespace resourced::daemon::transport {
namespace {

/// Two ends of a connection within the process; sent messages are available at once.
struct Ends {
  zmq::context_t context;
  zmq::socket_t sender{context, zmq::socket_type::pair};
  zmq::socket_t receiver{context, zmq::socket_type::pair};
  Multipart message;

  Ends() {
    // Unlimited queues, or the sender would block.
    for (zmq::socket_t* end : {&sender, &receiver}) {
      end->set(zmq::sockopt::linger, 0);
      end->set(zmq::sockopt::sndhwm, 0);
      end->set(zmq::sockopt::rcvhwm, 0);
    }
    receiver.bind("inproc://ends");
    sender.connect("inproc://ends");
  }
  void send(std::string_view part, bool more) {
    sender.send(zmq::buffer(part), more ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
};

TEST_CASE_FIXTURE(Ends, "a message comes whole, and then there is none") {
  send("one", true);
  send("", true);
  send(std::string(256, 'x'), false);
  REQUIRE(receive_now(receiver, message, 3) == Reading::message);
  CHECK(views_of(message, 0) ==
        std::vector<std::string_view>{"one", "", std::string_view(message.parts[2].data<char>(), 256)});
  CHECK_FALSE(message.too_many);
  // A frame has a header of two bytes for up to 255 bytes of content, and of nine for more.
  CHECK(message.bytes == (2 + 3) + 2 + (9 + 256));
  CHECK(receive_now(receiver, message, 3) == Reading::nothing);
}

TEST_CASE_FIXTURE(Ends, "the parts of a message beyond a limit are thrown away, some in each call") {
  constexpr std::size_t parts = 10000;
  for (std::size_t i = 1; i < parts; ++i) send("", true);
  send("", false);
  send("next", false);
  std::size_t calls = 1;
  Reading reading = receive_now(receiver, message, 3);
  for (; reading == Reading::part_of_message; ++calls) reading = receive_now(receiver, message, 3);
  CHECK(reading == Reading::message);
  CHECK(calls > 100);
  CHECK(message.too_many);
  CHECK(message.parts.size() == 3);
  CHECK(message.bytes == 2 * parts);

  REQUIRE(receive_now(receiver, message, 3) == Reading::message);
  CHECK(views_of(message, 0) == std::vector<std::string_view>{"next"});
  CHECK_FALSE(message.too_many);
}

/// Waits for a message from the other end.
std::uint64_t wait_for_bytes(zmq::socket_t& socket, Multipart& message) {
  constexpr std::chrono::seconds patience{30};
  std::array<zmq::pollitem_t, 1> items{{{socket.handle(), 0, ZMQ_POLLIN, 0}}};
  REQUIRE(zmq::poll(items.data(), items.size(), patience) == 1);
  REQUIRE(receive_now(socket, message, 3) == Reading::message);
  return message.bytes;
}

// Compared with the count of the kernel: a client whose messages are counted too small would eventually be
// cut off.
TEST_CASE("the bytes of a message are those that its TCP connection has carried, encrypted or not") {
  for (const bool is_encrypted : {false, true}) {
    CAPTURE(is_encrypted);
    zmq::context_t context;
    zmq::socket_t sender(context, zmq::socket_type::pair);
    zmq::socket_t receiver(context, zmq::socket_type::pair);
    for (zmq::socket_t* end : {&sender, &receiver}) end->set(zmq::sockopt::linger, 0);
    if (is_encrypted) {
      std::array<char, 41> key{};
      std::array<char, 41> secret{};
      REQUIRE(zmq_curve_keypair(key.data(), secret.data()) == 0);
      receiver.set(zmq::sockopt::curve_server, true);
      receiver.set(zmq::sockopt::curve_secretkey, secret.data());
      for (const auto option : {ZMQ_CURVE_SERVERKEY, ZMQ_CURVE_PUBLICKEY})
        REQUIRE(zmq_setsockopt(sender.handle(), option, key.data(), key.size()) == 0);
      sender.set(zmq::sockopt::curve_secretkey, secret.data());
    }
    receiver.bind("tcp://127.0.0.1:*");
    sender.connect(receiver.get(zmq::sockopt::last_endpoint));
    Multipart message;
    message.is_encrypted = is_encrypted;
    const auto send = [&](std::size_t size, bool more) {
      sender.send(zmq::buffer(std::string(size, 'x')),
                  more ? zmq::send_flags::sndmore : zmq::send_flags::none);
    };
    send(1, false);
    (void)wait_for_bytes(receiver, message);
    const int descriptor = zmq_msg_get(message.parts[0].handle(), ZMQ_SRCFD);
    const auto before = bytes_received(descriptor);
    REQUIRE(before);
    std::uint64_t counted = 0;
    for (const std::size_t size : {0, 1, 222, 223, 255, 256, 70000}) {
      for (int part = 1; part < 5; ++part) send(size, true);
      send(size, false);
      counted += wait_for_bytes(receiver, message);
    }
    CHECK(*bytes_received(descriptor) - *before == counted);
  }
}

}  // namespace
}  // namespace resourced::daemon::transport
