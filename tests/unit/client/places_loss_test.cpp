// A connection with several URIs whose leader ends, does not answer, or cannot commit.
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "client/target_wait.hpp"
#include "places.hpp"
#include "proto/local_frame.hpp"
#include "proto/message.hpp"
#include "wire/fake_bus.hpp"

using namespace resourced;
using client::Connection;
using client::Milliseconds;
using test::Places;
using wire::FakeBus;
using wire::Frames;

namespace {

constexpr const char* unloaded = "the resource module was unloaded";

/// A daemon at a local: URI that says that it leads, and answers nothing afterwards.
struct SilentLocal {
  explicit SilentLocal(const std::string& path)
      : listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener, 4) == 0);
  }
  ~SilentLocal() {
    ::close(listener);
    if (peer >= 0) ::close(peer);
  }
  SilentLocal(const SilentLocal&) = delete;
  SilentLocal& operator=(const SilentLocal&) = delete;

  void lead(Connection& connection) {
    wire::pump(connection, [&] { return (peer = ::accept(listener, nullptr, nullptr)) >= 0; });
    REQUIRE(::send(peer, "", 1, MSG_NOSIGNAL) == 1);
    proto::LocalFrameDecoder decoder(1024);
    std::optional<proto::Message> question;
    wire::pump(connection, [&] {
      char buffer[1024];
      const ssize_t size = ::recv(peer, buffer, sizeof buffer, MSG_DONTWAIT);
      if (size > 0) decoder.feed({buffer, static_cast<std::size_t>(size)});
      if (const auto parts = decoder.next()) question = proto::from_parts(*parts);
      return question.has_value();
    });
    REQUIRE(question->topic == "resource.leader");
    std::string frame;
    proto::append_local_frame(frame, proto::make_response(*question, proto::make_payload("{}")));
    REQUIRE(::send(peer, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size()));
  }

  int listener;
  int peer = -1;
};

#if defined(RESOURCED_SANITIZED)
// UndefinedBehaviorSanitizer opens a pipe to examine the type of an exception, and reports an error if it
// cannot.
constexpr bool sanitizer_needs_descriptors = true;
#else
constexpr bool sanitizer_needs_descriptors = false;
#endif

/// While this object lives, the process cannot open further descriptors.
struct NoDescriptors {
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const int next = ::dup(STDERR_FILENO);
    REQUIRE(next >= 0);
    ::close(next);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(next);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  rlimit before{};
};

}  // namespace

TEST_CASE_FIXTURE(Places, "a question that the leader ends as it shuts down goes to the next one") {
  Connection connection(both);
  {
    FakeBus bus(first);
    ask(connection, "resource.report");
    lead(bus, connection);
    bus.fail(expect(bus, connection, "resource.report"), ECANCELED, unloaded);
    // A change that is sent from now on waits for the next leader.
    wire::pump(connection, [&] { return !connection.connected(); });
    ask(connection, "resource.drain");
    connection.process();
    CHECK(bus.quiet());
  }
  FakeBus bus(second);
  lead(bus, connection);
  bus.respond(expect(bus, connection, "resource.report"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
  bus.respond(expect(bus, connection, "resource.drain"), "{\"at\":3}");
  CHECK(answer(connection) == "{\"at\":3}");
}

TEST_CASE_FIXTURE(Places, "a scheduler of several URIs goes on after a clean shutdown of the leader") {
  const std::string acquired =
      R"({"resources":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],)"
      R"("nodelist":["n0"],"starttime":0,"expiration":0}},"up":"0"})";
  struct Observer : client::AcquisitionObserver {
    std::optional<Error> error;
    void on_error(const Error& why) override { error = why; }
  } observer;
  using State = client::Acquisition::State;
  Connection connection(both);
  client::Acquisition acquisition(connection, observer);
  {
    FakeBus bus(first);
    lead(bus, connection);
    const Frames request = expect(bus, connection, "resource.acquire");
    bus.respond(request, acquired, true);
    wire::pump(connection, [&] { return acquisition.state() == State::held; });
    bus.fail(request, ECANCELED, unloaded);
    wire::pump(connection, [&] { return acquisition.state() != State::held; });
    CHECK(acquisition.state() == State::lost);
  }
  FakeBus bus(second);
  lead(bus, connection);
  bus.respond(expect(bus, connection, "resource.acquire"), acquired, true);
  wire::pump(connection, [&] { return acquisition.state() == State::held; });
  CHECK_FALSE(observer.error);
}

TEST_CASE_FIXTURE(Places, "a change is not sent over a connection that is known to be lost") {
  Connection connection(both);
  {
    FakeBus bus(first);
    ask(connection, "resource.status");
    lead(bus, connection);
    bus.respond(expect(bus, connection, "resource.status"), "{}");
    CHECK(answer(connection) == "{}");
  }
  pollfd waiting{connection.fd(), POLLIN, 0};
  REQUIRE(::poll(&waiting, 1, 10000) == 1);
  ask(connection, "resource.drain");
  FakeBus bus(second);
  lead(bus, connection);
  bus.respond(expect(bus, connection, "resource.drain"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
}

TEST_CASE_FIXTURE(Places, "questions pass a change that is put off, and later changes wait and say why") {
  client::ConnectionOptions options;
  options.retry_first = options.retry_most = std::chrono::hours(1);
  FakeBus bus(first);
  Connection connection(both, options);
  ask(connection, "resource.drain");
  lead(bus, connection);
  bus.fail(expect(bus, connection, "resource.drain"), EAGAIN, "etcd has no majority");
  // Responses arrive in order: the refusal comes before the first of these responses.
  for (const char* const at : {"{\"at\":1}", "{\"at\":2}"}) {
    ask(connection, "resource.status");
    bus.respond(expect(bus, connection, "resource.status"), at);
    CHECK(answer(connection) == at);
  }
  ask(connection, "resource.undrain", Milliseconds(50));
  CHECK(answer(connection) == std::to_string(EAGAIN) + "resource.undrain: not sent to " + both +
                                  " within 0.05 s, as an earlier change was refused: etcd has no majority");
  CHECK(bus.quiet());
}

TEST_CASE_FIXTURE(Places, "only an error of a change says that it may have been made") {
  Connection connection(both);
  {
    FakeBus bus(first);
    ask(connection, "resource.drain");
    lead(bus, connection);
    (void)expect(bus, connection, "resource.drain");
  }
  CHECK(answer(connection).find("may have been made") != std::string::npos);
  {
    FakeBus bus(second);
    ask(connection, "resource.wait");
    lead(bus, connection);
    (void)expect(bus, connection, "resource.wait");
  }
  CHECK(answer(connection).find("may have been made") == std::string::npos);
}

TEST_CASE_FIXTURE(Places, "a daemon behind a local URI that hangs is left") {
  const std::string path = directory.file("local");
  client::ConnectionOptions options;
  // Long enough for a busy machine: the daemon has to answer once before it hangs.
  options.heartbeat_interval = Milliseconds(100);
  options.heartbeat_timeout = Milliseconds(1000);
  Connection connection("local://" + path + "," + second, options);
  ask(connection, "resource.status");
  SilentLocal hangs(path);
  hangs.lead(connection);
  FakeBus bus(second);
  lead(bus, connection);
  bus.respond(expect(bus, connection, "resource.status"), "{\"at\":2}");
  CHECK(answer(connection) == "{\"at\":2}");
}

TEST_CASE_FIXTURE(Places, "a wait outlives a standby, and tells its refusal from that of the targets") {
  Connection connection(first);
  FakeBus bus(first);
  std::optional<Error> failure;
  client::TargetWait wait(connection, {.targets = "n0"}, [&](const std::optional<Error>& error) {
    failure = error;
    connection.stop();
  });
  bus.fail(expect(bus, connection, "resource.wait"), EHOSTUNREACH,
           "this daemon does not lead its cluster: standby, no leader");
  bus.fail(expect(bus, connection, "resource.wait"), EHOSTUNREACH, "nobody reports what runs on n0");
  wire::pump(connection, [&] { return failure.has_value(); });
  CHECK(std::string(failure->what()) == "nobody reports what runs on n0");
}

TEST_CASE_FIXTURE(Places, "a client without descriptors looks for the leader until it has some" *
                              doctest::skip(sanitizer_needs_descriptors)) {
  Connection connection(both);
  std::optional<FakeBus> bus(std::in_place, first);
  ask(connection, "resource.drain");
  lead(*bus, connection);
  (void)expect(*bus, connection, "resource.drain");
  bus.reset();
  CHECK(answer(connection).starts_with(std::to_string(ECONNRESET)));
  {
    const NoDescriptors none;
    ask(connection, "resource.drain", Milliseconds(100));
    CHECK(answer(connection).find("none of them leads") != std::string::npos);
  }
  ask(connection, "resource.drain");
  bus.emplace(second);
  lead(*bus, connection);
  bus->respond(expect(*bus, connection, "resource.drain"), "{}");
  CHECK(answer(connection) == "{}");
}
