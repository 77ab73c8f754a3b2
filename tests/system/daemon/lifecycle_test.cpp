// The daemon as a program: its start, endpoints and end, and its errors for an invalid configuration.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/connection.hpp"
#include "fixture.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

Outcome resourced(const std::vector<std::string>& arguments) {
  return Process(resourced_command(arguments)).finish();
}

bool one_line(const std::string& text) {
  return !text.empty() && text.back() == '\n' && std::count(text.begin(), text.end(), '\n') == 1;
}

TEST_SUITE_BEGIN("lifecycle");

TEST_CASE(
    "SIGTERM and SIGINT end the daemon in order: acquire gets ECANCELED, a journal ENODATA, the exit status "
    "is 0") {
  for (const int signal : {SIGTERM, SIGINT}) {
    CAPTURE(signal);
    Cluster cluster;
    RawClient scheduler(cluster.daemon.uri());
    const std::uint32_t stream = scheduler.acquire();
    CHECK(scheduler.receive(stream).errnum == 0);
    RawClient observer(cluster.daemon.uri());
    const auto journal = observer.send("resource.journal", json::object(), wire::flag_streaming);
    while (!observer.receive(journal).json()["events"].empty()) {
    }

    cluster.daemon.process().signal(signal);
    const RawResponse end = scheduler.receive(stream);
    CHECK(end.errnum == wire_errno::canceled);
    CHECK(end.text() == "the resource module was unloaded");
    CHECK(observer.receive(journal).errnum == wire_errno::nodata);
    CHECK(cluster.daemon.process().wait() == 0);

    cluster.daemon.start();
    CHECK(cluster.status()["online"] == "0-7");
  }
}

// A thread that is just starting, such as one of libzmq, must not receive the signal.
TEST_CASE("SIGTERM at the moment at which the daemon listens ends it in order, too") {
  Cluster cluster;
  for (int i = 0; i < 30; ++i) {
    cluster.daemon.process().signal(SIGTERM);
    REQUIRE(cluster.daemon.process().wait() == 0);
    cluster.daemon.start();
  }
}

TEST_CASE("the daemon listens on several endpoints and says where, the bound tcp port too") {
  TempDir dir;
  Daemon daemon(dir, {.config = std::string(eight_nodes) + "[access]\nanonymous = [\"user\"]\n",
                      .listen = {"ipc://" + (dir / "bus").string(), "tcp://127.0.0.1:*"}});
  REQUIRE(daemon.endpoints().size() == 2);
  CHECK(daemon.endpoints()[0] == "ipc://" + (dir / "bus").string());
  const std::string tcp = daemon.endpoints()[1];
  REQUIRE(tcp.starts_with("tcp://127.0.0.1:"));
  CHECK(std::stoi(tcp.substr(tcp.rfind(':') + 1)) > 0);

  RawClient near(daemon.endpoints()[0]);
  RawClient far(tcp);
  CHECK(near.call("resource.drain", {{"targets", "2"}}).errnum == 0);
  CHECK(far.call("resource.status").json()["drain"].contains("2"));
  CHECK(Ctl(tcp).output({"status", "-n", "-s", "drained", "-o", "{nodelist}"}) == "test2\n");
}

TEST_CASE("reloads in the middle of requests interrupt neither") {
  Cluster cluster;
  for (int i = 0; i < 300; ++i) {
    for (int k = 0; k < 20; ++k) cluster.operator_client.send_text("resource.ping", std::nullopt);
    cluster.daemon.hang_up();
    for (int k = 0; k < 20; ++k) REQUIRE(cluster.operator_client.receive().errnum == 0);
  }
  CHECK(cluster.daemon.terminate() == 0);
}

/// Whether a process blocks SIGHUP.
bool blocks_hangup(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:"))
      return (std::stoull(line.substr(line.find_first_not_of(" \t", 7)), nullptr, 16) >> (SIGHUP - 1) & 1U) !=
             0;
  }
  return false;
}

TEST_CASE("SIGHUP does not end a daemon that waits for the lock of its store") {
  const Cluster cluster;
  Process second(
      resourced_command({"--config", cluster.daemon.config_file(), "--state", cluster.dir / "state",
                         "--listen", "ipc://" + (cluster.dir / "other").string()}));
  for (const Deadline deadline; !blocks_hangup(second.pid());) REQUIRE_FALSE(deadline.passed());
  second.signal(SIGHUP);
  const Outcome outcome = second.finish();
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("in use by another resourced") != std::string::npos);
}

TEST_CASE("a daemon that ends leaves the sockets of another one at its paths alone") {
  const TempDir dir;
  const TempDir other;
  const std::string config =
      std::string(eight_nodes) + "[http]\nlisten = [\"unix://" + (dir / "http").string() + "\"]\n";
  const std::vector<std::string> listen = {"ipc://" + (dir / "bus").string(),
                                           "local://" + (dir / "local").string()};
  Daemon first(dir, {.config = config, .listen = listen});
  for (const char* name : {"bus", "local", "http"}) std::filesystem::remove(dir / name);
  Daemon second(other, {.config = config, .listen = listen});
  CHECK(first.terminate() == 0);
  CHECK(std::filesystem::is_socket(dir / "http"));
  CHECK(Ctl(listen[1]).output({"status", "-n", "-o", "{nodelist}"}) == "test[0-7]\n");
  CHECK(second.terminate() == 0);
  for (const char* name : {"local", "http"}) CHECK_FALSE(std::filesystem::exists(dir / name));
}

TEST_CASE("sockets that are removed while in use are named, and a reload is refused as nobody can connect") {
  const TempDir dir;
  const std::string config =
      std::string(eight_nodes) + "[http]\nlisten = [\"unix://" + (dir / "http").string() + "\"]\n";
  const std::vector<std::string> listen = {"ipc://" + (dir / "bus").string(),
                                           "local://" + (dir / "local").string()};
  Daemon daemon(dir, {.config = config, .listen = listen});
  const std::pair<const char*, std::string> places[] = {
      {"bus", listen[0]}, {"local", listen[1]}, {"http", "unix://" + (dir / "http").string()}};
  for (const auto& [file, address] : places) {
    CAPTURE(file);
    std::filesystem::rename(dir / file, dir / "kept");
    daemon.process().signal(SIGHUP);
    until_logged(daemon, "reload refused, the old configuration stays in force: " + address +
                             ": the socket was removed or replaced while in use");
    until_logged(daemon, "error: " + address + ": the socket was removed or replaced while in use");
    std::filesystem::rename(dir / "kept", dir / file);
  }
  daemon.process().signal(SIGHUP);
  until_logged(daemon, "configuration reloaded");
}

TEST_CASE("a client library whose process gets signals all the time works on") {
  Cluster cluster;
  static int signals = 0;
  struct sigaction count {};
  count.sa_handler = [](int /*number*/) { ++signals; };
  struct sigaction before {};
  REQUIRE(sigaction(SIGALRM, &count, &before) == 0);
  const itimerval often{{0, 50}, {0, 50}};
  client::Connection connection(cluster.daemon.uri());
  connection.connect();
  REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  for (int i = 0; i < 3000; ++i) CHECK_NOTHROW(connection.call("resource.ping"));
  const itimerval never{};
  REQUIRE(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  REQUIRE(sigaction(SIGALRM, &before, nullptr) == 0);
  CHECK(signals > 0);
}

TEST_CASE("a reader of the log that goes away does not end the daemon") {
  const TempDir dir;
  const auto config = dir.write("resourced.toml", eight_nodes);
  const std::string bus = "ipc://" + (dir / "bus").string();
  const std::string log = dir / "log-pipe";
  REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
  const int reader = ::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  Process daemon(
      resourced_command({"--config", config, "--state", (dir / "state").string(), "--listen", bus}),
      {.error_file = log});
  CHECK(daemon.expect_line() == "listening on " + bus);
  ::close(reader);
  RawClient client(bus);
  // Each reload logs a line.
  for (int i = 0; i < 20; ++i) CHECK(client.call("resource.reload").errnum == 0);
  daemon.signal(SIGTERM);
  CHECK(daemon.wait() == 0);
}

TEST_CASE("resourcectl ends quietly when the reader of its output goes away") {
  const Outcome outcome =
      Process({"/bin/sh", "-c",
               fmt::format("{}/resourcectl hostlist --expand 'h[0-1000000]' | head -n 1", RESOURCED_BIN)})
          .finish();
  CHECK(outcome.out.starts_with("h0"));
  CHECK(outcome.err.empty());
}

TEST_CASE("a second daemon on the same state is refused") {
  Cluster cluster;
  const Outcome second =
      resourced({"--config", cluster.daemon.config_file(), "--state", cluster.dir / "state", "--listen",
                 "ipc://" + (cluster.dir / "other").string()});
  CHECK(second.status == 1);
  CHECK_FALSE(second.err.empty());
  CHECK(cluster.status()["online"] == "0-7");
}

TEST_CASE("a second daemon does not take the endpoint of one that serves on it") {
  Cluster cluster;
  for (const std::string& endpoint : cluster.daemon.endpoints()) {
    CAPTURE(endpoint);
    const Outcome second = resourced(
        {"--config", cluster.daemon.config_file(), "--state", cluster.dir / "another", "--listen", endpoint});
    CHECK(second.status == 1);
    CHECK(second.err.find("cannot listen on " + endpoint + ": ") != std::string::npos);
    CHECK(RawClient(cluster.daemon.uri()).call("resource.ping", {{"seq", 1}}).errnum == 0);
  }
}

TEST_CASE("the daemon starts on what a killed one left behind: sockets, locks and all") {
  Cluster cluster;
  for (int round = 0; round < 3; ++round) {
    cluster.daemon.kill();
    cluster.daemon.start();
    CHECK(cluster.status()["online"] == "0-7");
  }
}

TEST_CASE("only a daemon of a cluster loads libcurl, and one that cannot load it says so and ends") {
  Cluster alone;
  const std::string maps = read_file(fmt::format("/proc/{}/maps", alone.daemon.process().pid()));
  CHECK(maps.find("libzmq") != std::string::npos);
  CHECK(maps.find("libcurl") == std::string::npos);

  TempDir dir;
  dir.write("libcurl.so.4", "");
  const std::string config =
      dir.write("resourced.toml",
                std::string(eight_nodes) + "[cluster]\netcd = [\"http://127.0.0.1:1\"]\nname = \"a\"\n");
  Process member(resourced_command({"--config", config, "--state", dir / "state", "--listen",
                                    "ipc://" + (dir / "bus").string()}),
                 {.environment = {{"LD_LIBRARY_PATH", dir.path()}}});
  const Outcome outcome = member.finish();
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("a cluster needs libcurl (Debian package libcurl4), which cannot be loaded: ") !=
        std::string::npos);
}

TEST_CASE("--check reads the configuration and says what it found") {
  TempDir dir;
  const Outcome good =
      resourced({"--check", "--state", dir / "state", "--config", dir.write("good.toml", eight_nodes)});
  CHECK(good.status == 0);
  CHECK(good.out.find('8') != std::string::npos);
  CHECK(good.err.empty());

  struct Case {
    const char* what;
    std::string text;
    const char* names;
  };
  const std::vector<Case> cases{
      {"not TOML", "[[resource.config]\n", "bad.toml:1"},
      {"an unknown key", std::string(eight_nodes) + "sockets = 2\n", "sockets"},
      {"a wrong type", "[[resource.config]]\nhosts = 5\n", "hosts"},
      {"a bad hostlist", "[[resource.config]]\nhosts = \"test[3-1]\"\ncores = \"0\"\n", "hosts"},
      {"a host without cores", "[[resource.config]]\nhosts = \"test1\"\n", "test1"},
      {"an unknown excluded host", "[resource]\nexclude = \"nosuch\"\n" + std::string(eight_nodes), "nosuch"},
      {"overlapping partitions",
       std::string(eight_nodes) + "[[acquire.partition]]\nname = \"a\"\ntargets = \"0-4\"\n"
                                  "[[acquire.partition]]\nname = \"b\"\ntargets = \"4-7\"\n",
       "b"},
      {"a member whose clients could not connect",
       std::string(eight_nodes) +
           "[cluster]\netcd = [\"http://127.0.0.1:1\"]\nadvertise = \"tcp://*:7481\"\n",
       "cluster.advertise"},
      {"an address without a scheme",
       std::string(eight_nodes) + "[cluster]\netcd = [\"http://127.0.0.1:1\"]\nadvertise = \"mgmt1:7481\"\n",
       "cluster.advertise"},
      {"no password of etcd",
       std::string(eight_nodes) +
           "[cluster]\netcd = [\"http://127.0.0.1:1\"]\nuser = \"u\"\npassword-file = \"nosuch\"\n",
       "nosuch"},
      {"a password of etcd that others can read",
       std::string(eight_nodes) +
           "[cluster]\netcd = [\"http://127.0.0.1:1\"]\nuser = \"u\"\npassword-file = \"bad.toml\"\n",
       "may read or change it"},
      {"no ca-file",
       std::string(eight_nodes) + "[cluster]\netcd = [\"https://127.0.0.1:1\"]\nca-file = \"nosuch.pem\"\n",
       "nosuch.pem"},
      {"a bad endpoint", std::string(eight_nodes) + "[bus]\nlisten = [\"udp://x\"]\n", "udp://x"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const Outcome bad =
        resourced({"--check", "--state", dir / "state", "--config", dir.write("bad.toml", c.text)});
    CAPTURE(bad.err);
    CHECK(bad.status == 1);
    CHECK(bad.out.empty());
    CHECK(bad.err.starts_with("resourced: "));
    CHECK(one_line(bad.err));
    CHECK(bad.err.find(c.names) != std::string::npos);
  }
  CHECK(resourced({"--check", "--state", dir / "state", "--config", dir / "nosuch.toml"}).status == 1);
}

// --check and a start list the ignored keys of other parts of Flux, one a line. (Flux's keys of [access]
// grant no rights.)
TEST_CASE("a site's whole Flux configuration is a configuration, and what is passed over is logged") {
  const std::string site =
      "[access]\nallow-guest-user = true\nallow-root-owner = true\n"
      "[bootstrap]\ncurve_cert = \"/etc/flux/system/curve.cert\"\n[[bootstrap.hosts]]\nhost = \"test[0-7]\"\n"
      "[policy.limits]\nduration = \"8h\"\n[sched-fluxion-qmanager]\nqueue-policy = \"easy\"\n"
      "[queues.batch]\npolicy.limits.duration = \"4h\"\n[queues.debug]\nhosts = \"test[6-7]\"\n"
      "[resource]\nnorestrict = true\nhistory = \"30d\"\n" +
      std::string(eight_nodes);
  const std::vector<std::string> keys{
      "access.allow-guest-user", "access.allow-root-owner", "bootstrap", "policy", "queues",
      "sched-fluxion-qmanager"};
  const auto names_each_once = [&](const std::string& log) {
    for (const std::string& key : keys) {
      CAPTURE(key);
      const std::string named = ": " + key + ": ";
      const std::size_t at = log.find(named);
      REQUIRE(at != std::string::npos);
      CHECK(log.find(named, at + 1) == std::string::npos);
      const std::string line = log.substr(0, log.find('\n', at));
      CHECK(line.find(" info: ", line.rfind('\n') + 1) != std::string::npos);
      CHECK(line.find("ignored: ", line.rfind('\n') + 1) != std::string::npos);
    }
  };
  TempDir dir;
  const Outcome checked = resourced({"--check", "--config", dir.write("site.toml", site)});
  CHECK(checked.status == 0);
  names_each_once(checked.err);

  Cluster cluster(site);
  names_each_once(cluster.daemon.log());
  CHECK(cluster.status()["R"]["execution"]["properties"] == json{{"+debug", "6-7"}});
  // Flux's clients ask for the configuration of queues.
  CHECK(
      cluster.operator_client.call("config.get").json()["queues"]["batch"]["policy"]["limits"]["duration"] ==
      "4h");
}

TEST_CASE("wrong usage is 2, help and version are 0") {
  CHECK(resourced({"--nosuch"}).status == 2);
  CHECK(resourced({"--config"}).status == 2);
  // With --instance the daemon takes its configuration from the broker, so these options are refused.
  for (const char* other : {"--check", "--state=x", "--config=x", "--listen=ipc://x", "--import=x"})
    CHECK(resourced({"--instance", other}).status == 2);
  for (const char* alone : {"--export", "--complete"}) CHECK(resourced({alone}).status == 2);
  CHECK(resourced({"--log-level", "loud"}).status != 0);
  const Outcome help = resourced({"--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("--listen") != std::string::npos);
  const Outcome version = resourced({"--version"});
  CHECK(version.status == 0);
  CHECK(version.out.find(RESOURCED_VERSION) != std::string::npos);
}

TEST_CASE("resourcectl says in one line that no daemon is there") {
  TempDir dir;
  const Outcome outcome = Ctl("ipc://" + (dir / "bus").string()).run({"status"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("resourcectl: "));
  CHECK(one_line(outcome.err));
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
