// CURVE on tcp: the keys with which a client connects, and the errors for those that are refused. The keys
// come from resourcectl keygen, and the configuration is its output.
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "core/error.hpp"
#include "fixture.hpp"

namespace resourced::e2e {
namespace {

/// Runs `resourcectl keygen FILE ...`; returns the lines for the daemon's configuration.
std::string keygen(const std::string& file, const std::vector<std::string>& more = {}) {
  std::vector<std::string> command{RESOURCED_BIN "/resourcectl", "keygen", file};
  command.insert(command.end(), more.begin(), more.end());
  Outcome outcome = Process(command).finish();
  if (outcome.status != 0) throw std::runtime_error(outcome.err);
  return outcome.out;
}

/// A daemon with a key, and a client with the role user whose key it knows.
struct CurveCluster {
  TempDir dir;
  std::string server_key = dir / "server.key";
  std::string client_key = dir / "login1.key";
  std::string known = (keygen(server_key), keygen(client_key, {"--server-key", server_key}));
  Daemon daemon{dir, {.config = configuration(known), .listen = {"tcp://127.0.0.1:*"}}};
  Ctl ctl{daemon.uri()};

  [[nodiscard]] std::string configuration(const std::string& keys) const {
    return fmt::format("{}\n[bus]\ncurve-key-file = \"{}\"\n\n{}", eight_nodes, server_key, keys);
  }
  /// Runs a command that must fail, and returns its line on standard error.
  [[nodiscard]] std::string failure(const std::vector<std::string>& arguments) const {
    const Outcome outcome = ctl.run(arguments);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    return outcome.err;
  }
  [[nodiscard]] std::string unreachable(const std::string& why) const {
    return fmt::format("resourcectl: cannot reach the daemon at {}: {}\n", daemon.uri(), why);
  }
};

TEST_SUITE_BEGIN("curve");

TEST_CASE_FIXTURE(CurveCluster, "a known key gets in, with the role that the configuration gives it") {
  CHECK(ctl.output({"--key", client_key, "list", "-n", "-o", "{nnodes}", "-s", "up"}) == "8\n");
  CHECK(failure({"--key", client_key, "drain", "1"}).find("resource.drain") != std::string::npos);
}

TEST_CASE_FIXTURE(CurveCluster, "the environment can name the key file") {
  Process process({RESOURCED_BIN "/resourcectl", "--uri", daemon.uri(), "ping"},
                  {.environment = {{"RESOURCED_KEY", client_key}}});
  CHECK(process.finish().status == 0);
}

TEST_CASE_FIXTURE(CurveCluster, "an unknown key is refused, and the daemon says whose") {
  const std::string stranger = dir / "stranger.key";
  const std::string block = keygen(stranger, {"--server-key", server_key});
  CHECK(failure({"--key", stranger, "status"}) ==
        unreachable(fmt::format("the daemon refuses the key in {}", stranger)));
  const std::string label = "public-key = \"";
  const std::string public_key = block.substr(block.find(label) + label.size(), 40);
  until_logged(daemon, fmt::format("unknown key {} from 127.0.0.1", public_key));
  CHECK(ctl.run({"--key", client_key, "ping"}).status == 0);
}

TEST_CASE_FIXTURE(CurveCluster, "a key that is added gets in, and one that is revoked is cut off at once") {
  const std::string added = dir / "added.key";
  const std::string block = keygen(added, {"--server-key", server_key});
  CHECK(ctl.run({"--key", added, "ping"}).status == 1);
  daemon.configure(configuration(known + block));
  daemon.hang_up();
  const auto follower = ctl.start({"--key", added, "eventlog", "-F"});
  follower->expect_line();

  daemon.configure(configuration(known));
  daemon.hang_up();
  const Outcome end = follower->finish();
  CHECK(end.status == 1);
  CHECK(end.err.find("lost the connection") != std::string::npos);
  CHECK(failure({"--key", added, "ping"}) ==
        unreachable(fmt::format("the daemon refuses the key in {}", added)));
  CHECK(ctl.run({"--key", client_key, "ping"}).status == 0);
}

TEST_CASE_FIXTURE(CurveCluster, "a key that has not spoken yet is cut off too when it is revoked") {
  const std::string silent = dir / "silent.key";
  const std::string block = keygen(silent, {"--server-key", server_key});
  daemon.configure(configuration(known + block));
  daemon.hang_up();
  client::ConnectionOptions options;
  options.key_file = silent;
  client::Connection connection(daemon.uri(), options);
  connection.connect();
  options.key_file = client_key;
  client::Connection other(daemon.uri(), options);
  other.connect();
  (void)other.call("resource.ping");

  daemon.configure(configuration(known));
  daemon.hang_up();
  const Deadline deadline;
  while (connection.connected() && !deadline.passed()) connection.wait(client::Milliseconds(deadline.left()));
  CHECK_FALSE(connection.connected());
  CHECK_THROWS_WITH_AS(
      static_cast<void>(connection.call("resource.ping")),
      fmt::format("cannot reach the daemon at {}: the daemon refuses the key in {}", daemon.uri(), silent)
          .c_str(),
      Error);
  // A connection whose key remains known is kept.
  CHECK(other.connected());
  (void)other.call("resource.ping");
}

TEST_CASE_FIXTURE(CurveCluster, "a client that trusts another daemon does not get in") {
  const std::string other = dir / "other.key";
  keygen(dir / "elsewhere.key");
  keygen(other, {"--server-key", dir / "elsewhere.key"});
  CHECK(failure({"--key", other, "status"}) ==
        unreachable(fmt::format(
            "the program that listens there ended the connection; its key is not the server-key in {}, "
            "or it has no key",
            other)));
}

TEST_CASE_FIXTURE(CurveCluster, "nobody gets in without a key") {
  // Either side may notice first, so the rest of the line varies.
  const std::string line = failure({"status"});
  CHECK(line.find(daemon.uri()) != std::string::npos);
  CHECK(line.find("a key") != std::string::npos);
}

TEST_CASE_FIXTURE(CurveCluster, "a key that others may read is not used") {
  std::filesystem::permissions(client_key, std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  CHECK(
      failure({"--key", client_key, "status"}) ==
      fmt::format("resourcectl: {0}: others may read or change it (mode 0640): chmod 600 {0}\n", client_key));
}

TEST_CASE_FIXTURE(CurveCluster, "the daemon does not start with a key that others may read") {
  CHECK(daemon.terminate() == 0);
  std::filesystem::permissions(server_key, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const Outcome outcome = Process(resourced_command({"--config", daemon.config_file(), "--state",
                                                     dir / "state", "--listen", daemon.uri()}))
                              .finish();
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find(fmt::format("{0}: others may read or change it (mode 0604): chmod 600 {0}",
                                     server_key)) != std::string::npos);
}

TEST_CASE("a client with a key does not talk to a daemon that has none") {
  const TempDir dir;
  const Daemon daemon(dir, {.listen = {"tcp://127.0.0.1:*"}});
  const std::string key = dir / "login1.key";
  keygen(dir / "server.key");
  keygen(key, {"--server-key", dir / "server.key"});
  const Outcome outcome = Ctl(daemon.uri()).run({"--key", key, "status"});
  CHECK(outcome.status == 1);
  // Either side may notice first, so either error is possible.
  CHECK(outcome.err.find(daemon.uri()) != std::string::npos);
  CHECK(outcome.err.find(key) != std::string::npos);
  CHECK((outcome.err.find("it has no key") != std::string::npos ||
         outcome.err.find("or it has none") != std::string::npos));
}

TEST_CASE_FIXTURE(CurveCluster,
                  "responses to a key carry its roles and no userid, never those of the owner") {
  const auto with_role = [&](const std::string& role) {
    const std::string file = dir / (role + ".key");
    std::string block = keygen(file, {"--server-key", server_key});
    return std::pair(file, block.replace(block.find("[\"user\"]"), 8, "[\"" + role + "\"]"));
  };
  const struct {
    std::string role;
    std::uint32_t rolemask;
  } rows[] = {{"user", 2}, {"scheduler", 2}, {"agent", 2}, {"admin", 2 | 8}, {"owner", 2 | 8}};
  std::string blocks = known;
  std::vector<std::string> files;
  for (const auto& row : rows) {
    auto [file, block] = with_role(row.role);
    files.push_back(std::move(file));
    blocks += block;
  }
  daemon.configure(configuration(blocks));
  daemon.hang_up();
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(rows[i].role);
    const auto key = nlohmann::json::parse(std::ifstream(files[i]));
    RawClient client(daemon.uri(), {.keys = KeyPair(key["public-key"], key["secret-key"]),
                                    .server_key = key["server-key"]});
    std::vector<RawResponse> responses{client.call("resource.status"), client.call("no.such"),
                                       client.call("resource.drain", {{"targets", "99"}})};
    responses.push_back(
        client.receive(client.send("resource.journal", nlohmann::json::object(), wire::flag_streaming)));
    for (const RawResponse& response : responses) {
      CAPTURE(response.topic);
      CHECK(response.userid == 0xFFFFFFFF);
      CHECK(response.rolemask == rows[i].rolemask);
    }
  }
}

TEST_CASE_FIXTURE(CurveCluster, "what a key does is by its name, and a reload by its signal") {
  std::string admin = known;
  const std::string user = "roles = [\"user\"]";
  REQUIRE(admin.find(user) != std::string::npos);
  admin.replace(admin.find(user), user.size(), "roles = [\"admin\"]");
  daemon.configure(configuration(admin));
  daemon.hang_up();
  CHECK(ctl.run({"--key", client_key, "drain", "1-2", "fan"}).status == 0);
  CHECK(ctl.output({"--key", client_key, "drain", "-n", "-o", "{user} {by}"}) ==
        "login1 {\"key\":\"login1\"}\n");
  daemon.configure("[resource]\nexclude = \"2\"\n" + configuration(admin));
  daemon.hang_up();
  // This request is answered once the store has the events of the reload.
  CHECK(ctl.run({"--key", client_key, "status"}).status == 0);
  const std::string log = ctl.output({"--key", client_key, "eventlog"});
  CHECK(log.find(R"( drain idset="1-2" nodelist="test[1-2]" overwrite=0 reason="fan" by={"key":"login1"})") !=
        std::string::npos);
  CHECK(log.find(R"( resource-define method="reload" by={"signal":"HUP"})") != std::string::npos);
  CHECK(log.find(R"( undrain idset="2" nodelist="test2" overwrite=0 by={"signal":"HUP"})") !=
        std::string::npos);
}

TEST_SUITE_END();

}  // namespace
}  // namespace resourced::e2e
