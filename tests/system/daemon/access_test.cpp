// Rights of local users, identified by the kernel: over ipc and over the Unix socket, with the packaged
// defaults, with rules, and when the rules change. (Rights of keys: curve_test.cpp; every topic:
// tests/unit/daemon_service/gate_test.cpp.)
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "fixture.hpp"
#include "harness/other_user.hpp"
#include "wire/local_client.hpp"
#include "wire/raw_socket.hpp"

namespace resourced::e2e {
namespace {

using nlohmann::json;

constexpr std::uint32_t someone = 65534;

/// With socket-group set, other users may also connect to the ZeroMQ endpoint.
const std::string shared_bus = std::string(eight_nodes) + "[bus]\nsocket-group = \"nogroup\"\n";

std::string with_rule(const std::string& roles) {
  return shared_bus + fmt::format("[[access.rule]]\nusers = [{}]\nroles = [{}]\n", someone, roles);
}

/// A daemon that other users can reach over the Unix socket, and with shared_bus over ZeroMQ.
struct Open {
  explicit Open(std::string config = std::string(eight_nodes)) : config_(std::move(config)) {
    // The directory of a test is private to its user unless it is opened here.
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  }

  [[nodiscard]] std::unique_ptr<RawClient> bus_client(std::uint32_t uid = someone) const {
    const OtherUser user(uid);
    return std::make_unique<RawClient>(daemon.uri());
  }
  [[nodiscard]] std::unique_ptr<LocalClient> local_client(std::uint32_t uid = someone) const {
    const OtherUser user(uid);
    return std::make_unique<LocalClient>(dir / "local");
  }
  void reload(const std::string& text) {
    daemon.configure(text);
    daemon.hang_up();
  }
  [[nodiscard]] json stats() { return owner.call("resource.stats-get").json(); }

 private:
  std::string config_;

 public:
  TempDir dir;
  Daemon daemon{dir,
                {.config = config_,
                 .listen = {"ipc://" + (dir / "bus").string(), "local://" + (dir / "local").string()}}};
  RawClient owner{daemon.uri()};
};

std::uint32_t mode_of(const std::filesystem::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

TEST_SUITE_BEGIN("access");

TEST_CASE("a rule for an account that is gone refuses no start, and is told in the log and as a metric") {
  const Open open(
      std::string(eight_nodes) +
      "[[access.rule]]\nusers = [\"nosuchuser\"]\ngroups = [\"nosuchgroup\"]\nroles = [\"admin\"]\n");
  const std::string log = open.daemon.log();
  for (const char* account : {R"(user "nosuchuser")", R"(group "nosuchgroup")"}) {
    CAPTURE(account);
    CHECK(log.find(fmt::format("access.rule[0]: unknown {}: the rule has no effect for this name until the "
                               "account exists\n",
                               account)) != std::string::npos);
  }
  RawClient client(open.daemon.uri());
  const std::string metrics = client.call("resource.metrics").json()["text"];
  CHECK(metrics.find("\nresourced_access_unknown_accounts 2\n") != std::string::npos);
}

TEST_CASE("by default other users read and change nothing, over either transport") {
  if (!can_be_other_users()) return;
  Open cluster(shared_bus);
  const auto bus = cluster.bus_client();
  const auto local = cluster.local_client();
  REQUIRE(local->welcome() == 0);
  const json before = cluster.owner.call("resource.status").json();
  CHECK(bus->call("resource.status").json() == before);
  CHECK(local->call("resource.status").json() == before);
  const json drain{{"targets", "1"}, {"reason", "because"}};
  for (const RawResponse& refusal :
       {bus->call("resource.drain", drain), local->call("resource.drain", drain)}) {
    CHECK(refusal.errnum == wire_errno::perm);
    CHECK(refusal.text() == "resource.drain requires the role admin");
  }
  CHECK(bus->receive(bus->acquire()).errnum == wire_errno::perm);
  CHECK(cluster.owner.call("resource.status").json() == before);
  CHECK(cluster.stats()["denied-requests"] == 3);
  until_logged(cluster.daemon, "denied resource.drain to uid 65534");
  CHECK(cluster.owner.call("resource.drain", drain).errnum == 0);
}

TEST_CASE("responses carry the credentials of their requests, over either transport") {
  if (!can_be_other_users()) return;
  Open cluster(with_rule("\"admin\"") + "[[access.rule]]\nusers = [65533]\nroles = []\n");
  // Flux drops a response whose rolemask has no bit in common with the roles that its caller accepts.
  const auto check_both = [&](std::uint32_t uid, std::uint32_t rolemask) {
    CAPTURE(uid);
    const auto bus = cluster.bus_client(uid);
    std::vector<RawResponse> responses{bus->call("resource.status"), bus->call("no.such"),
                                       bus->call("resource.drain", {{"targets", "99"}})};
    if (rolemask != 4) {
      const auto local = cluster.local_client(uid);
      REQUIRE(local->welcome() == 0);
      responses.push_back(local->call("resource.status"));
      responses.push_back(local->call("resource.shrink", {{"targets", "99"}}));
      local->request("resource.journal", json::object(), wire::flag_streaming);
      responses.push_back(local->response());
    }
    for (const RawResponse& response : responses) {
      CAPTURE(response.topic);
      CHECK(response.userid == uid);
      CHECK(response.rolemask == rolemask);
    }
  };
  check_both(0, 1 | 4);
  check_both(someone, 2 | 4 | 8);
  check_both(65532, 2 | 4);
  check_both(65533, 4);
}

TEST_CASE("a rule gives a user roles, and a reload takes them away at once") {
  if (!can_be_other_users()) return;
  Open cluster(with_rule("\"admin\", \"scheduler\""));
  const auto bus = cluster.bus_client();
  const auto local = cluster.local_client();
  CHECK(local->call("resource.drain", {{"targets", "1"}}).errnum == 0);
  const std::uint32_t stream = bus->acquire();
  CHECK(bus->receive(stream).json()["up"] == "0,2-7");

  cluster.reload(with_rule("\"user\""));
  const RawResponse end = bus->receive(stream);
  CHECK(end.errnum == wire_errno::perm);
  CHECK(local->call("resource.undrain", {{"targets", "1"}}).errnum == wire_errno::perm);
  CHECK(local->call("resource.status").errnum == 0);
  CHECK(cluster.owner.receive(cluster.owner.acquire()).errnum == 0);

  cluster.reload(with_rule(""));
  CHECK(local->ended());
  CHECK(cluster.local_client()->welcome() == static_cast<int>(wire_errno::perm));
  CHECK(cluster.bus_client()->call("resource.status").errnum == wire_errno::perm);
}

TEST_CASE("a connection is its user's whatever its descriptor was used for before") {
  if (!can_be_other_users()) return;
  Open cluster(shared_bus);
  // Guests send a request and disconnect; then root connects, probably on the same descriptors.
  for (int i = 0; i < 200; ++i) {
    const auto guest = cluster.bus_client();
    guest->send("resource.drain", {{"targets", "7"}}, wire::flag_noresponse);
  }
  for (int i = 0; i < 50; ++i) CHECK(RawClient(cluster.daemon.uri()).call("resource.ping").errnum == 0);
  CHECK(cluster.owner.call("resource.status").json()["drain"].empty());
}

TEST_CASE("the sockets have the configured mode") {
  SUBCASE("by default anybody may knock at the Unix socket") {
    const Open cluster;
    CHECK(mode_of(cluster.dir / "bus") == 0600);
    CHECK(mode_of(cluster.dir / "local") == 0666);
  }
  SUBCASE("as configured") {
    const Open cluster(std::string(eight_nodes) + "[bus]\nsocket-mode = \"0600\"\n");
    CHECK(mode_of(cluster.dir / "bus") == 0600);
    CHECK(mode_of(cluster.dir / "local") == 0600);
    if (can_be_other_users()) CHECK_THROWS_AS((void)cluster.local_client(), std::system_error);
  }
  SUBCASE("with a group") {
    if (!can_be_other_users()) return;
    const Open cluster(shared_bus);
    CHECK(mode_of(cluster.dir / "bus") == 0660);
    CHECK(mode_of(cluster.dir / "local") == 0666);
  }
}

TEST_CASE("a ZeroMQ endpoint admits the owner, and a group that is named, and nobody else") {
  if (!can_be_other_users()) return;
  const auto connects = [](const Open& cluster, std::uint32_t uid, std::uint32_t gid) {
    const OtherUser user(uid, gid);
    try {
      const RawSocket socket(cluster.daemon.uri());
      return true;
    } catch (const std::system_error& error) {
      CHECK(error.code().value() == EACCES);
      return false;
    }
  };
  constexpr std::uint32_t nogroup = 65534;
  const Open closed;
  CHECK_FALSE(connects(closed, someone, nogroup));
  const Open shared(shared_bus);
  CHECK(connects(shared, someone, nogroup));
  CHECK_FALSE(connects(shared, someone, 12345));
  CHECK(shared.local_client()->welcome() == 0);
}

TEST_CASE("a frame of another user is shorter than one of the owner may be") {
  if (!can_be_other_users()) return;
  // The long timeout ensures that the connection ends because of the size of the frame.
  const Open cluster(std::string(eight_nodes) + "[limits]\nhandshake-timeout = \"1h\"\n");
  // The header of a frame of 2 MiB and a byte.
  const std::string_view header("\x12\x00\xEE\xFF\x00\x20\x00\x01", 8);
  const auto guest = cluster.local_client();
  CHECK(guest->call("resource.ping").errnum == 0);
  guest->send(header);
  CHECK(guest->ended());
  LocalClient owner(cluster.dir / "local");
  CHECK(owner.call("resource.ping").errnum == 0);
  owner.send(header);
  CHECK(LocalClient(cluster.dir / "local").call("resource.ping").errnum == 0);
  CHECK_FALSE(owner.ended(Deadline(std::chrono::milliseconds(0))));
}

TEST_CASE("one user has so many connections to the Unix socket, and others theirs") {
  if (!can_be_other_users()) return;
  Open cluster(std::string(eight_nodes) + "[limits]\nconnections-per-uid = 3\n");
  std::vector<std::unique_ptr<LocalClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(cluster.local_client());
    CHECK(clients.back()->welcome() == 0);
  }
  CHECK(cluster.local_client()->welcome() == static_cast<int>(wire_errno::busy));
  CHECK(LocalClient(cluster.dir / "local").call("resource.ping").errnum == 0);
  CHECK(cluster.stats()["refused-connections"] == 1);
  // There is room again once the daemon has seen the end of the connection.
  clients.pop_back();
  while (true) {
    const auto next = cluster.local_client();
    if (next->welcome() == 0) break;
  }
}

TEST_CASE("a frame that does not end is ended, others are served meanwhile") {
  Open cluster(std::string(eight_nodes) + "[limits]\nhandshake-timeout = \"100ms\"\n");
  LocalClient slow(cluster.dir / "local");
  slow.send(std::string_view("\x12\x00\xEE\xFF\x00\x00\x00\x4F", 8));
  LocalClient quiet(cluster.dir / "local");
  LocalClient busy(cluster.dir / "local");
  CHECK(busy.call("resource.ping").errnum == 0);
  CHECK(slow.ended());
  // A connection may be silent between frames.
  CHECK(quiet.call("resource.ping").errnum == 0);
  CHECK(busy.call("resource.ping").errnum == 0);
}

TEST_CASE("a tcp endpoint beyond loopback is refused without CURVE") {
  const TempDir dir;
  const auto config = dir.write("resourced.toml", eight_nodes);
  const Outcome outcome = Process(resourced_command({"--config", config, "--listen", "tcp://*:*", "--state",
                                                     (dir / "state").string()}))
                              .finish();
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("tcp://*:*") != std::string::npos);
  CHECK(outcome.err.find("bus.curve-key-file") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(dir / "state"));
}

TEST_CASE("over tcp without a key nobody comes in, unless the site says so") {
  const auto listen = std::vector<std::string>{"tcp://127.0.0.1:*"};
  {
    Cluster closed({.listen = listen});
    CHECK(closed.operator_client.call("resource.status").errnum == wire_errno::perm);
    CHECK(closed.operator_client.call("resource.drain", {{"targets", "1"}}).errnum == wire_errno::perm);
  }
  Cluster open({.config = std::string(eight_nodes) + "[access]\nanonymous = [\"user\"]\n", .listen = listen});
  CHECK(open.operator_client.call("resource.status").errnum == 0);
  CHECK(open.operator_client.call("resource.drain", {{"targets", "1"}}).errnum == wire_errno::perm);
  open.daemon.configure(std::string(eight_nodes) + "[access]\nanonymous = [\"admin\"]\n");
  open.daemon.hang_up();
  open.drain("1");
  CHECK(open.status()["drain"]["1"]["by"] == json{{"address", "127.0.0.1"}});
}

TEST_CASE("the token of an acquisition is in no file and no answer") {
  const std::string token = "5ec2e7d0c0ffee012345678ABCDEFabc";
  const std::string note = "this text is found";
  Cluster cluster(std::string(eight_nodes) + "[acquire]\nkeep = \"30s\"\n[log]\nlevel = \"trace\"\n");
  const auto acquire = [](RawClient& client, const std::string& holder) {
    const json payload{{"holder", holder}, {"extensions", {"ledger"}}, {"lease", 3600}};
    return client.receive(client.send("resource.acquire", payload, wire::flag_streaming));
  };
  const auto holder = [&] { return cluster.operator_client.call("resource.peers").json()["holders"][0]; };
  std::string said;
  {
    RawClient lost(cluster.daemon.uri());
    said += acquire(lost, token).json().dump();
    const json children{{"core", "0"}};
    const json resources{
        {"version", 1},
        {"execution",
         {{"R_lite", json::array({{{"rank", "0"}, {"children", children}}})}, {"nodelist", {"test0"}}}}};
    CHECK(lost.call("resource.alloc", {{"id", "j1"}, {"R", resources}, {"note", note}}).errnum == 0);
  }
  for (const Deadline deadline; !holder().contains("kept-until");) REQUIRE_FALSE(deadline.passed());
  RawClient other(cluster.daemon.uri());
  const RawResponse busy = acquire(other, std::string(32, '1'));
  CHECK(busy.errnum == wire_errno::busy);
  said += busy.text();
  const auto ask = [&] {
    for (const char* topic : {"resource.peers", "resource.status", "resource.sched-status", "config.get",
                              "resource.allocations", "resource.stats-get", "resource.metrics"})
      said += cluster.operator_client.call(topic).json().dump();
  };
  ask();
  RawClient again(cluster.daemon.uri());
  said += acquire(again, token).json().dump();
  RawClient last(cluster.daemon.uri());
  said += acquire(last, token).json().dump();
  CHECK(cluster.operator_client.call("resource.evict", {{"since", holder()["since"]}}).errnum == 0);
  for (const RawResponse& response : again.settle()) said += response.payload;
  for (const RawResponse& response : last.settle()) said += response.payload;
  ask();
  said += cluster.ctl.output({"eventlog", "--since", "0", "--allocations", "--json"});
  CHECK(said.find(note) != std::string::npos);

  // The digits as they came, in small or capital letters, and the bytes that they stand for.
  std::vector<std::string> forms(4);
  forms[0] = token;
  for (const char digit : token) {
    forms[1] += static_cast<char>(std::tolower(digit));
    forms[2] += static_cast<char>(std::toupper(digit));
  }
  for (std::size_t i = 0; i < token.size(); i += 2)
    forms[3] += static_cast<char>(std::stoi(token.substr(i, 2), nullptr, 16));
  const auto check = [&](const std::string& text) {
    for (const std::string& form : forms) CHECK(text.find(form) == std::string::npos);
  };
  check(said);
  // With the configuration and the log.
  const auto check_files = [&] {
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cluster.dir.path())) {
      if (!entry.is_regular_file()) continue;
      const std::string text = read_file(entry.path());
      if (text.find(note) != std::string::npos) ++found;
      check(text);
    }
    CHECK(found > 0);
  };
  check_files();
  CHECK(cluster.daemon.log().find("evicted by") != std::string::npos);
  CHECK(cluster.daemon.terminate() == 0);
  check_files();
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
