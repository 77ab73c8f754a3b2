// resource-agent as a function: its command line, its exit status, and its behaviour with systemd and
// signals.
#include "agent/program.hpp"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/rset/resource_set.hpp"
#include "environment.hpp"
#include "temp_dir.hpp"
#include "wire/fake_bus.hpp"
#include "wire/notify_socket.hpp"

using namespace resourced;
using nlohmann::json;
using test::Variable;
using wire::NotifySocket;

namespace {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

Outcome run(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"resource-agent"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  Outcome outcome;
  outcome.status = agent::run(static_cast<int>(argv.size()), argv.data(), out, err);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

std::string read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

/// A running agent. The destructor ends it by a signal to this process, which the agent's thread handles.
struct Running : test::NoHwlocVariables {
  Running() = default;
  ~Running() {
    // A signal ends the agent even without a daemon.
    bus.close();
    if (thread.joinable()) {
      kill(getpid(), SIGTERM);
      thread.join();
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void start(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--uri", uri, "--hostname", "node7", "--synthetic", "core:4 pu:2"});
    thread = std::thread([this, more] { outcome = run(more); });
  }
  const Outcome& end() {
    thread.join();
    return outcome;
  }

  test::TempDir directory;
  std::string uri = "ipc://" + directory.file("bus");
  wire::FakeBus bus{uri};
  Outcome outcome;
  std::thread thread;
};

}  // namespace

TEST_SUITE("program") {
  TEST_CASE_FIXTURE(test::NoHwlocVariables, "--print shows the R as JSON") {
    const auto outcome =
        run({"--print", "--hostname", "node7", "--xml", RESOURCED_VECTORS "/hwloc/four_gpus.xml"});
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK(is_one_line(outcome.out));
    const auto r = json::parse(outcome.out);
    CHECK(r.at("version") == 1);
    CHECK(r.at("execution").at("R_lite") ==
          json::parse(R"([{"rank":"0","children":{"core":"0-15","gpu":"0-3"}}])"));
    CHECK(r.at("execution").at("nodelist") == json::parse(R"(["node7"])"));
    CHECK(rset::ResourceSet::parse(outcome.out).encode() + "\n" == outcome.out);
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "without options --print shows this host") {
    const auto outcome = run({"--print"});
    CHECK(outcome.status == 0);
    CHECK(rset::ResourceSet::parse(outcome.out).ranks() == text::IdSet{0});
  }

  TEST_CASE("wrong usage is status 2 and one line") {
    const std::vector<std::vector<std::string>> cases = {{"--nonsense"},
                                                         {"extra"},
                                                         {"--interval", "soon"},
                                                         {"--interval", "0"},
                                                         {"--interval", "-1"},
                                                         {"--interval", "1ms"},
                                                         {"--interval", "inf"},
                                                         {"--interval", "2h"},
                                                         {"--hostname", "two hosts"},
                                                         {"--hostname", "n[1-2]"},
                                                         {"--hostname", ""},
                                                         {"--log-level", "loud"},
                                                         {"--xml"},
                                                         {"--xml", "a", "--synthetic", "b"}};
    for (const auto& arguments : cases) {
      CAPTURE(json(arguments).dump());
      auto with_print = arguments;
      with_print.insert(with_print.begin(), "--print");
      const auto outcome = run(with_print);
      CHECK(outcome.status == 2);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.starts_with("resource-agent: "));
      CHECK(is_one_line(outcome.err));
    }
  }

  TEST_CASE("--help and --version are status 0") {
    CHECK(run({"--version"}).out == "resource-agent " RESOURCED_VERSION "\n");
    const auto help = run({"--help"});
    CHECK(help.status == 0);
    for (const auto* option : {"--uri", "--key", "--hostname", "--interval", "--xml", "--synthetic",
                               "--print", "--log-level", "--version", "--health-program", "--health-interval",
                               "--health-timeout", "--health-socket", "health"}) {
      CAPTURE(option);
      CHECK(help.out.find(option) != std::string::npos);
    }
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "what cannot work is status 1 and one line") {
    const std::vector<std::vector<std::string>> cases = {
        {"--xml", "/nonexistent/topology.xml"},
        {"--xml", RESOURCED_SOURCE "/README.md"},
        {"--synthetic", "nonsense"},
        {"--uri", "nonsense", "--synthetic", "core:1 pu:1"},
        {"--uri", "tcp://127.0.0.1:1", "--key", "/nonexistent/key", "--synthetic", "core:1 pu:1"}};
    for (const auto& arguments : cases) {
      CAPTURE(json(arguments).dump());
      const auto outcome = run(arguments);
      CHECK(outcome.status == 1);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.starts_with("resource-agent: "));
      CHECK(is_one_line(outcome.err));
    }
  }

  TEST_CASE_FIXTURE(Running, "SIGTERM and SIGINT end it with a farewell and status 0") {
    for (const int signal : {SIGTERM, SIGINT}) {
      CAPTURE(signal);
      start({"--interval", "1h"});
      const auto hello = bus.receive();
      CHECK(hello.topic() == "resource.agent");
      const auto payload = json::parse(hello.payload());
      CHECK(payload.at("boot-id").get<std::string>() + '\n' == read_boot_id());
      CHECK(payload.at("hostname") == "node7");
      CHECK(payload.at("R").at("execution").at("R_lite") ==
            json::parse(R"([{"rank":"0","children":{"core":"0-3"}}])"));
      bus.respond(hello, R"({"rank":0,"interval":0.01})", true);
      CHECK(bus.receive().topic() == "resource.agent-beat");
      kill(getpid(), signal);
      wire::Frames next;
      do {
        next = bus.receive();
      } while (next.topic() == "resource.agent-beat");
      CHECK(next.topic() == "resource.agent-cancel");
      bus.fail(hello, ECANCELED, "canceled");
      const auto& ended = end();
      CHECK(ended.status == 0);
      CHECK(ended.out.empty());
      CHECK(ended.err.find("online as rank 0") != std::string::npos);
      CHECK(bus.receive().topic() == "resource.disconnect");
    }
  }

  TEST_CASE_FIXTURE(Running, "a second signal ends the wait for the daemon's answer") {
    start();
    const auto hello = bus.receive();
    kill(getpid(), SIGTERM);
    CHECK(bus.receive().topic() == "resource.agent-cancel");
    kill(getpid(), SIGTERM);
    CHECK(end().status == 0);
  }

  TEST_CASE_FIXTURE(Running, "systemd hears that it is ready though the daemon is not there, and how it is") {
    const auto path = directory.file("notify");
    NotifySocket systemd(path);
    const Variable notify("NOTIFY_SOCKET", path);
    bus.close();
    start();
    CHECK(systemd.expect("READY=1") == "READY=1");
    systemd.expect("STATUS=cannot reach the daemon at " + uri);
    bus.open();
    const auto hello = bus.receive();
    bus.respond(hello, R"({"rank":3})", true);
    CHECK(systemd.expect("STATUS=online") == "STATUS=online as rank 3, a beat every 10 s");
    kill(getpid(), SIGTERM);
    systemd.expect("STOPPING=1");
    CHECK(bus.receive().topic() == "resource.agent-cancel");
    bus.fail(hello, ECANCELED, "canceled");
    CHECK(end().status == 0);
  }

  TEST_CASE_FIXTURE(Running, "systemd's watchdog is fed as long as the loop runs") {
    const auto path = directory.file("notify");
    NotifySocket systemd(path);
    const Variable notify("NOTIFY_SOCKET", path);
    const Variable watchdog("WATCHDOG_USEC", "2000");
    const Variable for_anybody("WATCHDOG_PID", std::nullopt);
    bus.close();
    start();
    for (int i = 0; i < 3; ++i) systemd.expect("WATCHDOG=1");
    kill(getpid(), SIGTERM);
    systemd.expect("STOPPING=1");
    CHECK(end().status == 0);
  }
}
