// Reloads with another password, user or certificate for etcd.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "certificates.hpp"
#include "cluster_node.hpp"
#include "harness/ctl.hpp"

namespace resourced::e2e {
namespace {

using OwnEtcd = test::Etcd;

void write_secret(const TempDir& dir, const std::string& name, const std::string& text) {
  dir.write(name, text);
  REQUIRE(chmod((dir / name).c_str(), 0600) == 0);
}

/// Waits until a change by the leader has reached the other daemon, whichever leads.
void check_served(const Node& one, const Node& two, const std::string& target, const std::string& reason) {
  Ctl(both(one, two)).done({"drain", target, reason});
  for (const Node* node : {&one, &two}) {
    const Deadline deadline(patience);
    const Ctl ctl(node->uri());
    std::string shown;
    while (shown.find(reason) == std::string::npos && !deadline.passed()) shown = ctl.run({"drain"}).out;
    CHECK(shown.find(reason) != std::string::npos);
  }
}

}  // namespace

TEST_SUITE_BEGIN("cluster credentials");

TEST_CASE("a reload reads the password for etcd again, and takes over a new user, on leader and standby") {
  OwnEtcd etcd({.election = std::chrono::milliseconds(100)});
  test::add_user(etcd, "first");
  const TempDir dir;
  write_secret(dir, "password", "first");
  const std::string user =
      fmt::format("user = \"member\"\npassword-file = \"{}\"\n", (dir / "password").string());
  Node first("a", etcd.toml());
  first.until_leading();
  Node second("b", etcd.toml());
  until_serving(second.uri());
  const auto configure = [&](Node& node, const std::string& more) {
    const std::string before = read_file(node.dir() / "resourced.toml");
    node.dir().write("resourced.toml", before + more);
    node.process().signal(SIGHUP);
    until_logged(node, "configuration reloaded");
  };
  // The user is configured before etcd has authentication, and used once it has.
  configure(first, user);
  configure(second, user);
  check_served(first, second, "1", "configured");
  etcd.control({"auth", "enable"});
  check_served(first, second, "2", "enabled");
  test::change_password(etcd, "second");
  write_secret(dir, "password", "second");
  first.process().signal(SIGHUP);
  second.process().signal(SIGHUP);
  check_served(first, second, "3", "changed");
  etcd.control({"auth", "disable", "--user", "root:secret"});
  check_served(first, second, "4", "disabled");
}

TEST_CASE("a reload uses another certificate for etcd, and refuses a key that does not fit") {
  const TempDir dir;
  test::make_certificates(dir);
  test::make_certificate(dir, "renewed");
  OwnEtcd etcd({.tls = dir / ".", .election = std::chrono::milliseconds(100)});
  const auto files = [&](const std::string& certificate, const std::string& key) {
    return fmt::format("ca-file = \"{}\"\ncertificate = \"{}\"\nkey = \"{}\"\n", (dir / "ca.crt").string(),
                       (dir / certificate).string(), (dir / key).string());
  };
  Node first("a", etcd.toml(), files("client.crt", "client.key"));
  first.until_leading();
  Node second("b", etcd.toml(), files("client.crt", "client.key"));
  until_serving(second.uri());
  const auto configure = [&](Node& node, const std::string& certificate, const std::string& key) {
    const std::string before = read_file(node.dir() / "resourced.toml");
    node.dir().write("resourced.toml", before.substr(0, before.find("ca-file")) + files(certificate, key));
    node.process().signal(SIGHUP);
  };
  for (Node* node : {&first, &second}) {
    configure(*node, "renewed.crt", "client.key");
    until_logged(*node, "client.key: is not the key of the certificate in ");
    configure(*node, "renewed.crt", "renewed.key");
    until_logged(*node, "configuration reloaded");
  }
  // Every connection is made again.
  std::filesystem::remove(dir / "client.crt");
  std::filesystem::remove(dir / "client.key");
  etcd.kill(0);
  etcd.start(0);
  check_served(first, second, "5", "renewed");
}

TEST_SUITE_END();

}  // namespace resourced::e2e
