#include "daemon/zmq_receive.hpp"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace resourced::daemon {
namespace {

/// Two ends of a connection within the process: what one has sent, the other has.
struct Ends {
  zmq::context_t context;
  zmq::socket_t sender{context, zmq::socket_type::pair};
  zmq::socket_t receiver{context, zmq::socket_type::pair};
  Multipart message;

  Ends() {
    // No bound on what may wait, or the sender would block.
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
  // A frame has two bytes before up to 255 of its own, and nine before more.
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

}  // namespace
}  // namespace resourced::daemon
