// The Unix socket transport when accept() fails (it retries after a pause, without spinning), and at its
// shutdown.
#include "daemon/transport/local_transport.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "temp_dir.hpp"
#include "wire/raw_socket.hpp"

namespace {

/// The errno with which accept() of this program fails; 0 to accept connections.
int accept_fails_with = 0;
/// Calls of accept() that found a connection or failed.
std::size_t accept_calls = 0;

}  // namespace

// Replaces accept() of the C library in this program: most of its errors on a Unix socket require a lack of
// memory or a security module.
extern "C" int accept(int fd, sockaddr* address, socklen_t* size) {
  if (accept_fails_with != 0) {
    ++accept_calls;
    errno = accept_fails_with;
    return -1;
  }
  const int connection = accept4(fd, address, size, 0);
  if (connection >= 0 || errno != EAGAIN) ++accept_calls;
  return connection;
}

namespace resourced::daemon::transport {
namespace {

using Clock = std::chrono::steady_clock;

struct LocalRecorder final : Listener {
  void on_client(Transport& /*transport*/, ClientId client, const Credentials& /*credentials*/) override {
    clients.push_back(client);
  }
  void on_message(ClientId /*client*/, proto::Message /*message*/) override { ++messages; }
  void on_gone(ClientId /*client*/) override { ++gone; }
  void on_writable() override {
    if (writable) writable();
  }
  void on_malformed(ClientId /*client*/, const std::string& /*reason*/) override { ++malformed; }
  void on_refused(const std::string& reason) override { refused.push_back(reason); }

  std::vector<ClientId> clients;
  std::function<void()> writable;
  std::size_t messages = 0;
  std::size_t gone = 0;
  std::size_t malformed = 0;
  std::vector<std::string> refused;
};

class LocalClient {
 public:
  explicit LocalClient(const std::string& path) : socket_("local://" + path) {}

  /// Discards received bytes, and returns whether the stream has ended.
  bool at_end() {
    const auto [bytes, end] = socket_.discard();
    received_ += bytes;
    return end;
  }
  [[nodiscard]] std::size_t received() const { return received_; }

  /// Returns 0, or the errno with which send() failed.
  [[nodiscard]] int send(std::string_view bytes) const { return socket_.send(bytes); }

 private:
  std::size_t received_ = 0;
  wire::RawSocket socket_;
};

/// While this object lives, the process cannot open descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) throw std::system_error(errno, std::generic_category());
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

struct LocalStand {
  LocalStand() { accept_calls = 0; }
  ~LocalStand() { accept_fails_with = 0; }
  LocalStand(const LocalStand&) = delete;
  LocalStand& operator=(const LocalStand&) = delete;

  void run_until(const std::function<bool()>& reached) {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (!reached()) {
      if (Clock::now() > deadline) throw std::runtime_error("what was waited for did not happen");
      loop.run_one_for(std::chrono::milliseconds(100));
    }
  }

  /// Runs the loop until accept() has failed several times, and checks the pauses between the calls.
  void check_pauses() {
    constexpr std::size_t calls = 4;
    constexpr std::chrono::milliseconds pause{100};
    const auto begun = Clock::now();
    run_until([&] { return accept_calls >= calls; });
    CHECK(Clock::now() - begun >= (calls - 1) * pause);
    CHECK(accept_calls == calls);
    CHECK(recorder.clients.empty());
    REQUIRE_FALSE(recorder.refused.empty());
  }

  /// Connects a client, which becomes the last client of the recorder.
  std::unique_ptr<LocalClient> connect() {
    auto client = std::make_unique<LocalClient>(path);
    const std::size_t before = recorder.clients.size();
    run_until([&] { return recorder.clients.size() > before; });
    return client;
  }

  resourced::test::TempDir dir;
  std::string path = dir.file("local");
  boost::asio::io_context loop{1};
  ClientIds ids;
  LocalRecorder recorder;
  std::unique_ptr<Transport> transport = make_local_transport(loop, path, {}, ids, recorder);
};

TEST_CASE("whatever accept() fails with, it is tried again after a pause, and every client gets in") {
  for (const int errnum :
       {ECONNABORTED, EPROTO, ENOBUFS, ENOMEM, ENFILE, EMFILE, EPERM, EINVAL, EOPNOTSUPP, ENETDOWN, EIO}) {
    CAPTURE(std::generic_category().message(errnum));
    LocalStand stand;
    accept_fails_with = errnum;
    const LocalClient first(stand.path);
    const LocalClient second(stand.path);
    stand.check_pauses();
    CHECK(stand.recorder.refused[0] == "cannot accept a connection on local://" + stand.path + ": " +
                                           std::generic_category().message(errnum));
    accept_fails_with = 0;
    stand.run_until([&] { return stand.recorder.clients.size() == 2; });
  }
}

TEST_CASE("a process without descriptors does not spin, and takes the connections once it has some") {
  LocalStand stand;
  const LocalClient first(stand.path);
  const LocalClient second(stand.path);
  {
    const NoDescriptors none;
    stand.check_pauses();
    CHECK(stand.recorder.refused[0].ends_with(": " + std::generic_category().message(EMFILE)));
  }
  stand.run_until([&] { return stand.recorder.clients.size() == 2; });
}

TEST_CASE("a transport that reads no more does not try again") {
  LocalStand stand;
  accept_fails_with = ENOBUFS;
  const LocalClient client(stand.path);
  stand.run_until([&] { return accept_calls == 1; });
  stand.transport->stop_reading();
  accept_fails_with = 0;
  // Wait for the end of the pause.
  stand.loop.run();
  CHECK(accept_calls == 1);
  CHECK(stand.recorder.clients.empty());
}

proto::Message answer(std::size_t bytes) {
  proto::Message message;
  message.type = proto::MessageType::response;
  message.flags = proto::flag::payload;
  message.payload = std::make_shared<const std::string>(bytes, 'x');
  return message;
}

TEST_CASE("after its last answer a client sees the end, and may send until it closes the connection") {
  LocalStand stand;
  auto told = stand.connect();
  const auto idle = stand.connect();
  stand.transport->stop_reading();
  CHECK(stand.transport->unclosed() == 0);
  CHECK(stand.transport->send(stand.recorder.clients[0], answer(10)) == SendResult::sent);
  stand.transport->end_writing();
  stand.run_until([&] { return told->at_end(); });
  CHECK(stand.transport->unsent() == 0);
  // More bytes than the socket buffers hold, none of which are a frame.
  const std::string piece(50000, '?');
  for (int pieces = 0; pieces < 100; ++pieces) {
    int error = EAGAIN;
    stand.run_until([&] { return (error = told->send(piece)) != EAGAIN; });
    REQUIRE(error == 0);
  }
  CHECK(stand.transport->unclosed() == 1);
  CHECK(stand.recorder.gone == 0);
  told.reset();
  stand.run_until([&] { return stand.recorder.gone == 1; });
  CHECK(stand.transport->unclosed() == 0);
  CHECK(stand.recorder.messages + stand.recorder.malformed == 0);
}

TEST_CASE("the end of the stream comes behind what a full client has yet to get") {
  LocalStand stand;
  const auto client = stand.connect();
  const ClientId id = stand.recorder.clients[0];
  constexpr std::size_t size = 400000;
  constexpr std::size_t answers = 40;
  std::size_t sent = 0;
  const auto send_on = [&] {
    while (sent < answers && stand.transport->send(id, answer(size)) == SendResult::sent) ++sent;
  };
  stand.recorder.writable = send_on;
  stand.transport->stop_reading();
  send_on();
  REQUIRE(sent < answers);
  stand.transport->end_writing();
  stand.run_until([&] { return client->at_end(); });
  CHECK(sent == answers);
  CHECK(client->received() > answers * size);
  CHECK(stand.transport->unsent() == 0);
  CHECK(stand.transport->unclosed() == 1);
}

}  // namespace
}  // namespace resourced::daemon::transport
