// Reasons why a daemon cannot be reached, also while the name server does not answer, and hosts with one
// address that does not answer.
#include "client/reachability.hpp"

#include <atomic>
#include <stdexcept>
#include <string>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netdb.h>
#include <unistd.h>

#include "client/connection.hpp"
#include "core/error.hpp"
#include "wire/fake_bus.hpp"

namespace {

/// While true, look-ups of names do not return.
std::atomic<bool> is_silent = false;
/// Whether the next look-up of played.example makes the later ones silent.
std::atomic<bool> is_silent_after_one = false;

}  // namespace

// Replaces getaddrinfo() of the C library in this program.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  using Function = decltype(&getaddrinfo);
  const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  // A numeric host needs no name server.
  if ((hints->ai_flags & AI_NUMERICHOST) != 0) return next(node, service, hints, found);
  is_silent.wait(true);
  if (std::string(node) != "played.example") return next(node, service, hints, found);
  if (is_silent_after_one.exchange(false)) is_silent = true;
  if (const int failure = next("127.0.0.2", service, hints, found); failure != 0) return failure;
  return next("127.0.0.1", service, hints, &(*found)->ai_next);
}

namespace resourced::client {
namespace {

TEST_CASE("nobody waits for a server of names that does not answer") {
  is_silent = true;
  const Error error = explain(ConnectFailure::unreachable, "tcp://localhost:1", "");
  CHECK(error.errnum() == EHOSTUNREACH);
  CHECK(std::string(error.what()) ==
        "cannot reach the daemon at tcp://localhost:1: localhost: the server of names has not answered yet");
  is_silent = false;
  is_silent.notify_all();
}

TEST_CASE(
    "a connection does not wait longer for a server of names than for the daemon, and its end not at all") {
  is_silent = true;
  ConnectionOptions options;
  options.connect_timeout = Milliseconds(50);
  {
    Connection connection("tcp://localhost:1", options);
    CHECK_THROWS_WITH_AS(connection.connect(), "cannot reach the daemon at tcp://localhost:1: no answer",
                         Error);
  }
  is_silent = false;
  is_silent.notify_all();
}

TEST_CASE("process() does not wait for the reason of a failed attempt") {
  is_silent_after_one = true;
  Connection connection("tcp://played.example:1");
  std::string order;
  connection.send("resource.status", [&](const Response& response) {
    order += fmt::format("failed with {}", response.error().errnum());
    connection.stop();
  });
  // The attempt fails at once, and the look-up for the reason is given up after a quarter of a second.
  connection.after(Milliseconds(50), [&] { order += "timer "; });
  CHECK(connection.run_for(wire::patience));
  CHECK(order == fmt::format("timer failed with {}", EHOSTUNREACH));
  is_silent = false;
  is_silent.notify_all();
}

/// A socket on 127.0.0.2 that takes connections up to its backlog, and never answers.
class Mute {
 public:
  explicit Mute(int backlog) : socket_(bound()) {
    if (listen(socket_, backlog) != 0) throw std::runtime_error("listen");
  }
  ~Mute() { close(socket_); }
  Mute(const Mute&) = delete;
  Mute& operator=(const Mute&) = delete;

  [[nodiscard]] sockaddr_in address() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    return address;
  }
  [[nodiscard]] int port() const { return ntohs(address().sin_port); }

 private:
  static int bound() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, "127.0.0.2", &address.sin_addr);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("bind");
    return fd;
  }

  int socket_;
};

void check_next_address(const Mute& mute) {
  const wire::FakeBus bus(fmt::format("tcp://127.0.0.1:{}", mute.port()));
  ConnectionOptions options;
  options.connect_timeout = Milliseconds(2000);
  Connection connection(fmt::format("tcp://played.example:{}", mute.port()), options);
  connection.connect();
  CHECK(connection.connected());
}

TEST_CASE("an address whose program says nothing leaves time for the next one") {
  check_next_address(Mute(5));
}

TEST_CASE("an address that does not take connections leaves time for the next one") {
  const Mute mute(0);
  // This connection fills the backlog.
  const int first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = mute.address();
  REQUIRE(connect(first, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  check_next_address(mute);
  close(first);
}

TEST_CASE("an unknown name is reported, and a port without a listener") {
  const Error unknown = explain(ConnectFailure::unreachable, "tcp://no-such-host.invalid:1", "");
  CHECK(unknown.errnum() == EHOSTUNREACH);
  CHECK(std::string(unknown.what())
            .starts_with("cannot reach the daemon at tcp://no-such-host.invalid:1: no-such-host.invalid: "));
  CHECK(explain(ConnectFailure::unreachable, "tcp://127.0.0.1:1", "").errnum() == ECONNREFUSED);
}

}  // namespace
}  // namespace resourced::client
