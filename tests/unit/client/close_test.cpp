// The end of a connection: the daemon is told of it also behind requests that cannot be sent yet.
#include <array>
#include <cstddef>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "client/connection.hpp"
#include "proto/matchtag_pool.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"
#include "wire/raw_socket.hpp"

using namespace resourced;
using client::Connection;
using client::Milliseconds;
using client::Response;
using wire::FakeBus;

namespace {

constexpr auto ignore = [](const Response&) {};
constexpr client::SendOptions stream{.streaming = true};

client::ConnectionOptions patient() {
  client::ConnectionOptions options;
  options.linger = Milliseconds(30000);
  return options;
}

/// Makes more requests than there is room for.
void fill(Connection& connection) {
  connection.send("resource.acquire", ignore, stream);
  constexpr int more_than_sockets_hold = 4000;
  const nlohmann::json payload{{"x", std::string(std::size_t{10} << 10, 'x')}};
  for (int i = 0; i < more_than_sockets_hold; ++i) connection.send("resource.ping", payload, ignore);
}

}  // namespace

TEST_SUITE("close") {
  TEST_CASE("close() tells the daemon of it while all matchtags are in use") {
    const test::TempDir directory;
    FakeBus bus("ipc://" + directory.file("bus"));
    Connection connection("ipc://" + directory.file("bus"));
    connection.send("resource.acquire", ignore, stream);
    for (std::size_t i = 0; i < proto::MatchtagPool::default_limit; ++i)
      connection.send("resource.ping", ignore);
    for (std::size_t i = 0; i < proto::MatchtagPool::default_limit; ++i) (void)bus.receive(connection);
    connection.close();
    CHECK(bus.receive().topic() == "resource.disconnect");
    CHECK(bus.quiet());
  }

  TEST_CASE("close() waits for room to tell the daemon of it") {
    const test::TempDir directory;
    SUBCASE("ipc") {
      FakeBus bus("ipc://" + directory.file("bus"));
      Connection connection("ipc://" + directory.file("bus"), patient());
      connection.connect();
      fill(connection);
      bool is_told = false;
      std::thread daemon([&] {
        try {
          while (!is_told) is_told = bus.receive().topic() == "resource.disconnect";
        } catch (const wire::Timeout&) {
          return;
        }
      });
      connection.close();
      daemon.join();
      CHECK(is_told);
    }
    SUBCASE("local") {
      const wire::RawListener listener(directory.file("local"));
      Connection connection("local://" + directory.file("local"), patient());
      connection.send("resource.ping", ignore);
      const wire::RawSocket peer = listener.accept();
      peer.send(std::string(1, '\0'));
      connection.connect();
      fill(connection);
      std::string received;
      std::thread daemon([&] {
        std::array<char, 65536> buffer;
        for (ssize_t size; (size = ::recv(peer.fd(), buffer.data(), buffer.size(), 0)) > 0;)
          received.append(buffer.data(), static_cast<std::size_t>(size));
      });
      connection.close();
      daemon.join();
      CHECK(received.find("resource.disconnect") != std::string::npos);
    }
    SUBCASE("no longer than the linger time") {
      FakeBus bus("ipc://" + directory.file("bus"));
      auto options = patient();
      options.linger = Milliseconds(20);
      Connection connection("ipc://" + directory.file("bus"), options);
      connection.connect();
      fill(connection);
      connection.close();
    }
  }
}
