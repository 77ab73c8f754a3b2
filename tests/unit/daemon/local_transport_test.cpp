// The Unix socket transport when accept() fails: it tries again after a pause, and never spins.
#include "daemon/local_transport.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "temp_dir.hpp"

namespace {

/// The errno with which accept() of this program fails; 0 to accept connections.
int accept_fails_with = 0;
/// Calls of accept() that found a connection or failed.
std::size_t accept_calls = 0;

}  // namespace

// Takes the place of the C library's in this program, since a Unix socket gives most of these errors only
// where memory or a security module refuses.
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

namespace resourced::daemon {
namespace {

using Clock = std::chrono::steady_clock;

struct Recorder final : Listener {
  void on_client(Transport& /*transport*/, ClientId client, const Credentials& /*credentials*/) override {
    clients.push_back(client);
  }
  void on_message(ClientId /*client*/, proto::Message /*message*/) override {}
  void on_gone(ClientId /*client*/) override {}
  void on_writable() override {}
  void on_malformed(const std::string& /*reason*/) override {}
  void on_refused(const std::string& reason) override { refused.push_back(reason); }

  std::vector<ClientId> clients;
  std::vector<std::string> refused;
};

class Client {
 public:
  explicit Client(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (fd_ < 0 || connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::system_error(errno, std::generic_category(), path);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

 private:
  int fd_;
};

/// No descriptor of this process can be opened while it lives.
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

struct Stand {
  Stand() { accept_calls = 0; }
  ~Stand() { accept_fails_with = 0; }
  Stand(const Stand&) = delete;
  Stand& operator=(const Stand&) = delete;

  void run_until(const std::function<bool()>& reached) {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (!reached()) {
      if (Clock::now() > deadline) throw std::runtime_error("what was waited for did not happen");
      loop.run_one_for(std::chrono::milliseconds(100));
    }
  }

  /// Runs the loop until accept() has failed so often, and checks that a pause lies between each two.
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

  resourced::test::TempDir dir;
  std::string path = dir.file("local");
  boost::asio::io_context loop{1};
  ClientIds ids;
  Recorder recorder;
  std::unique_ptr<Transport> transport = make_local_transport(loop, path, {}, ids, recorder);
};

TEST_CASE("whatever accept() fails with, it is tried again after a pause, and every client gets in") {
  for (const int errnum :
       {ECONNABORTED, EPROTO, ENOBUFS, ENOMEM, ENFILE, EMFILE, EPERM, EINVAL, EOPNOTSUPP, ENETDOWN, EIO}) {
    CAPTURE(std::generic_category().message(errnum));
    Stand stand;
    accept_fails_with = errnum;
    const Client first(stand.path);
    const Client second(stand.path);
    stand.check_pauses();
    CHECK(stand.recorder.refused[0] == "cannot accept a connection on local://" + stand.path + ": " +
                                           std::generic_category().message(errnum));
    accept_fails_with = 0;
    stand.run_until([&] { return stand.recorder.clients.size() == 2; });
  }
}

TEST_CASE("a process without descriptors does not spin, and takes the connections once it has some") {
  Stand stand;
  const Client first(stand.path);
  const Client second(stand.path);
  {
    const NoDescriptors none;
    stand.check_pauses();
    CHECK(stand.recorder.refused[0].ends_with(": " + std::generic_category().message(EMFILE)));
  }
  stand.run_until([&] { return stand.recorder.clients.size() == 2; });
}

TEST_CASE("a transport that reads no more does not try again") {
  Stand stand;
  accept_fails_with = ENOBUFS;
  const Client client(stand.path);
  stand.run_until([&] { return accept_calls == 1; });
  stand.transport->stop_reading();
  accept_fails_with = 0;
  // The pause ends.
  stand.loop.run();
  CHECK(accept_calls == 1);
  CHECK(stand.recorder.clients.empty());
}

}  // namespace
}  // namespace resourced::daemon
