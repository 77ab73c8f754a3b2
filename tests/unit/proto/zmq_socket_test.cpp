// Calls that do not wait, on both ends of a connection within the process.
#include "proto/zmq_socket.hpp"

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace resourced::proto {
namespace {

/// Two ends of a connection within the process; sent messages are available at once.
struct Ends {
  zmq::context_t context;
  zmq::socket_t sender{context, zmq::socket_type::pair};
  zmq::socket_t receiver{context, zmq::socket_type::pair};
  Multipart message;

  Ends() {
    // The queues are unlimited, as the sender would block otherwise.
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

TEST_CASE("a call is repeated as long as a signal interrupts it") {
  int calls = 0;
  const auto call = [&](int last_errno) {
    calls = 0;
    return uninterrupted([&] {
      errno = ++calls < 4 ? EINTR : last_errno;
      return calls < 4 || last_errno != 0 ? -1 : 7;
    });
  };
  CHECK(call(0) == 7);
  CHECK(calls == 4);
  CHECK(call(EAGAIN) == -1);
  CHECK(errno == EAGAIN);
  CHECK(calls == 4);
}

TEST_CASE_FIXTURE(Ends, "what is sent is there, and a refusal has its errno") {
  CHECK((events_of(receiver) & ZMQ_POLLIN) == 0);
  CHECK((events_of(sender) & ZMQ_POLLOUT) != 0);
  CHECK(send_now(sender, "a", true) == 0);
  CHECK(send_now(sender, "b", false) == 0);
  CHECK((events_of(receiver) & ZMQ_POLLIN) != 0);
  zmq::message_t part;
  REQUIRE(receive_now(receiver, part));
  CHECK(part.to_string_view() == "a");
  CHECK(part.more());
  REQUIRE(receive_now(receiver, part));
  CHECK(part.to_string_view() == "b");
  CHECK_FALSE(part.more());
  CHECK_FALSE(receive_now(receiver, part));

  zmq::socket_t alone(context, zmq::socket_type::push);
  CHECK(send_now(alone, "", false) == EAGAIN);
  CHECK((events_of(alone) & ZMQ_POLLOUT) == 0);
}

MonitorEvent wait_for_event(zmq::socket_t& monitor) {
  constexpr std::chrono::seconds patience{30};
  std::array<zmq::pollitem_t, 1> items{{{monitor.handle(), 0, ZMQ_POLLIN, 0}}};
  REQUIRE(zmq::poll(items.data(), items.size(), patience) == 1);
  return next_event(monitor).value();
}

TEST_CASE("a monitor reports connections with their descriptors") {
  zmq::context_t context;
  zmq::socket_t listener(context, zmq::socket_type::pair);
  zmq::socket_t monitor(context, zmq::socket_type::pair);
  listener.set(zmq::sockopt::linger, 0);
  open_monitor(listener, monitor, "inproc://monitor", ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED);
  CHECK_FALSE(next_event(monitor));
  listener.bind("tcp://127.0.0.1:*");
  MonitorEvent accepted;
  {
    zmq::socket_t client(context, zmq::socket_type::pair);
    client.set(zmq::sockopt::linger, 0);
    client.connect(listener.get(zmq::sockopt::last_endpoint));
    accepted = wait_for_event(monitor);
    CHECK(accepted.number == ZMQ_EVENT_ACCEPTED);
  }
  const MonitorEvent ended = wait_for_event(monitor);
  CHECK(ended.number == ZMQ_EVENT_DISCONNECTED);
  CHECK(ended.value == accepted.value);
  CHECK_FALSE(next_event(monitor));
  zmq_socket_monitor(listener.handle(), nullptr, 0);

  zmq::socket_t other(context, zmq::socket_type::pair);
  CHECK_THROWS_AS(open_monitor(listener, other, "tcp://127.0.0.1:*", ZMQ_EVENT_ALL), zmq::error_t);
}

}  // namespace
}  // namespace resourced::proto
