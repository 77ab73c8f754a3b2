// The limit of messages that never end, over real TCP connections.
#include "daemon/transport/zmq_connections.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/zmq_socket.hpp"

namespace resourced::daemon::transport {
namespace {

constexpr std::uint64_t most = 1 << 20;
constexpr std::uint64_t most_in_all = 4 << 20;

/// A TCP connection over the loopback interface; the daemon's end reads what the test sends.
class TcpConnection {
 public:
  TcpConnection() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    peer_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener, generic, size) != 0 || ::listen(listener, 1) != 0 ||
        ::getsockname(listener, generic, &size) != 0 || ::connect(peer_, generic, size) != 0)
      throw std::runtime_error("no connection over loopback");
    descriptor_ = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  }
  ~TcpConnection() {
    ::close(peer_);
    ::close(descriptor_);
  }
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;
  TcpConnection(TcpConnection&&) = delete;
  TcpConnection& operator=(TcpConnection&&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// Sends this many bytes and receives them at the daemon's end.
  void transfer(std::size_t bytes) const {
    std::thread sender([&] {
      const std::string block(65536, 'x');
      for (std::size_t left = bytes; left > 0;) {
        const ssize_t sent = ::send(peer_, block.data(), std::min(left, block.size()), MSG_NOSIGNAL);
        if (sent <= 0) return;
        left -= static_cast<std::size_t>(sent);
      }
    });
    std::array<char, 65536> buffer;
    for (std::size_t left = bytes; left > 0;) {
      const ssize_t got = ::recv(descriptor_, buffer.data(), std::min(left, buffer.size()), 0);
      if (got <= 0) break;
      left -= static_cast<std::size_t>(got);
    }
    sender.join();
  }

  /// Whether the daemon's end was shut down.
  [[nodiscard]] bool ended() const {
    char byte = 0;
    return ::recv(peer_, &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  int peer_ = -1;
  int descriptor_ = -1;
};

struct WatchedEndpoint {
  ZmqConnections connections{std::make_shared<ConnectionCount>(ConnectionCount::Limits{}),
                             std::chrono::seconds(15)};

  /// Checks every connection, and returns the number of ended ones.
  std::size_t look() { return connections.check(most, most_in_all).size(); }
};

/// A watched connection; the first check only registers it.
struct OneConnection : WatchedEndpoint {
  TcpConnection peer;
  OneConnection() {
    REQUIRE(connections.accepted(peer.descriptor()).wanted);
    REQUIRE(look() == 0);
  }
};

TEST_CASE_FIXTURE(OneConnection, "a connection that sends more than a message may have is ended") {
  peer.transfer(most);
  CHECK(look() == 0);
  CHECK_FALSE(peer.ended());
  peer.transfer(1);
  CHECK(look() == 1);
  CHECK(peer.ended());
}

TEST_CASE_FIXTURE(OneConnection,
                  "a message that is too long is found if all of it has arrived before the first check") {
  peer.transfer(3 * most);
  CHECK(look() == 1);
  CHECK(peer.ended());
}

TEST_CASE_FIXTURE(OneConnection, "a message that does not end is found right after a whole message") {
  peer.transfer(100 + 3 * most);
  connections.heard(peer.descriptor(), 100);
  // After one check, the other bytes may be messages that libzmq has not handed over yet.
  CHECK(look() == 0);
  CHECK_FALSE(peer.ended());
  CHECK(look() == 1);
  CHECK(peer.ended());
}

TEST_CASE_FIXTURE(OneConnection, "whole messages may be sent for ever") {
  for (int i = 0; i < 8; ++i) {
    peer.transfer(most);
    connections.heard(peer.descriptor(), most);
    CHECK(look() == 0);
  }
  CHECK(look() == 0);
  CHECK_FALSE(peer.ended());
}

TEST_CASE_FIXTURE(OneConnection,
                  "messages that wait in libzmq end no connection, as long as some are handed over") {
  peer.transfer(6 * most);
  for (int i = 0; i < 6; ++i) {
    connections.heard(peer.descriptor(), most);
    CHECK(look() == 0);
  }
  CHECK(look() == 0);
  CHECK_FALSE(peer.ended());
}

TEST_CASE_FIXTURE(OneConnection, "handshakes and heartbeats never sum up to a long message") {
  for (int i = 0; i < 100; ++i) {
    peer.transfer(65536);
    connections.heard(peer.descriptor(), 100);
    CHECK(look() == 0);
  }
  CHECK(look() == 0);
  CHECK_FALSE(peer.ended());
}

TEST_CASE_FIXTURE(WatchedEndpoint, "of all connections together, those are ended that have most") {
  std::vector<std::unique_ptr<TcpConnection>> peers;
  for (std::size_t i = 0; i < 6; ++i) {
    peers.push_back(std::make_unique<TcpConnection>());
    REQUIRE(connections.accepted(peers[i]->descriptor()).wanted);
  }
  CHECK(look() == 0);
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i]->transfer(most - 6 + i);
  CHECK(look() == 2);
  for (std::size_t i = 0; i < peers.size(); ++i) CHECK(peers[i]->ended() == (i >= 4));
}

/// Waits for a message from the other end, and returns its bytes.
std::uint64_t wait_for_bytes(zmq::socket_t& socket, proto::Multipart& message) {
  constexpr std::chrono::seconds patience{30};
  std::array<zmq::pollitem_t, 1> items{{{socket.handle(), 0, ZMQ_POLLIN, 0}}};
  REQUIRE(zmq::poll(items.data(), items.size(), patience) == 1);
  REQUIRE(receive_now(socket, message, 3) == proto::Reading::message);
  return message.bytes;
}

// The reference is the kernel's count: if messages were counted too small, their client would be cut off in
// the end.
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
    proto::Multipart message;
    message.is_encrypted = is_encrypted;
    const auto send = [&](std::size_t size, bool more) {
      sender.send(zmq::buffer(std::string(size, 'x')),
                  more ? zmq::send_flags::sndmore : zmq::send_flags::none);
    };
    send(1, false);
    (void)wait_for_bytes(receiver, message);
    const int descriptor = zmq_msg_get(message.parts[0].handle(), ZMQ_SRCFD);
    const auto before = tcp_state(descriptor);
    REQUIRE(before);
    std::uint64_t counted = 0;
    for (const std::size_t size : {0U, 1U, 222U, 223U, 255U, 256U, 70000U}) {
      for (int part = 1; part < 5; ++part) send(size, true);
      send(size, false);
      counted += wait_for_bytes(receiver, message);
    }
    CHECK(tcp_state(descriptor)->bytes_received - before->bytes_received == counted);
  }
}

}  // namespace
}  // namespace resourced::daemon::transport
