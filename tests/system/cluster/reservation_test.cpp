// After a takeover the former holder of a partition may acquire it before other users.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cluster_node.hpp"
#include "harness/other_user.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

constexpr std::uint32_t someone = 65534;

const std::string shared = fmt::format(
    "[bus]\nsocket-group = \"nogroup\"\n[[access.rule]]\nusers = [{}]\nroles = [\"scheduler\"]\n"
    "[[acquire.partition]]\nname = \"batch\"\ntargets = \"test[0-3]\"\n",
    someone);

std::unique_ptr<client::Connection> connect(const std::string& uri, bool as_other) {
  std::optional<OtherUser> user;
  if (as_other) user.emplace(someone);
  auto connection = std::make_unique<client::Connection>(uri);
  connection->call("resource.status", json::object(), patience);
  return connection;
}

/// Acquires a partition: returns nothing if the connection holds it now, otherwise the error's text.
std::optional<std::string> refusal(client::Connection& connection, const char* partition) {
  std::optional<std::string> why;
  json payload = json::object();
  if (*partition != 0) payload["partition"] = partition;
  connection.send("resource.acquire", payload,
                  [&](const client::Response& response) {
                    if (!response.ok()) why = response.error().what();
                    connection.stop();
                  },
                  {.streaming = true});
  REQUIRE(connection.run_for(patience));
  return why;
}

struct Shared {
  Shared() {
    for (const Node* node : {&first, &second})
      std::filesystem::permissions(node->dir().path(), std::filesystem::perms(0755));
  }
  /// Waits until the holders in etcd contain this text.
  void until_kept(const std::string& part) {
    while (etcd.control({"get", "/resourced/holders", "--print-value-only"}).find(part) == std::string::npos)
      continue;
  }

  Etcd etcd;
  Node first{"a", etcd.toml(), shared};
  Node second{name_after(first, "b"), etcd.toml(), shared};
};

}  // namespace

TEST_SUITE_BEGIN("cluster reservations");

TEST_CASE("another user acquires a partition once its former holder had ten seconds, or was back") {
  if (!can_be_other_users()) return;
  Shared daemons;
  auto holder = connect(daemons.first.uri(), false);
  CHECK_FALSE(refusal(*holder, "batch"));
  auto rest = connect(daemons.first.uri(), false);
  CHECK_FALSE(refusal(*rest, ""));
  daemons.until_kept(R"("partition":"")");
  daemons.first.kill(daemons.etcd);
  daemons.second.until_leading();
  auto other = connect(daemons.second.uri(), true);
  const auto why = refusal(*other, "batch");
  REQUIRE(why);
  CHECK(why->starts_with("partition batch is kept for its scheduler until "));
  CHECK(why->ends_with(fmt::format(": uid {} held it before this daemon took over", getuid())));
  const std::string of_rest = refusal(*other, "").value_or("");
  CHECK(of_rest.starts_with("the resources are kept for their scheduler until "));
  CHECK(of_rest.ends_with(fmt::format(": uid {} held them before this daemon took over", getuid())));
  // The former holder acquires at once; another one does after the former holder has left.
  auto back = connect(daemons.second.uri(), false);
  CHECK_FALSE(refusal(*back, "batch"));
  back.reset();
  const Deadline deadline(patience);
  while (refusal(*other, "batch") && !deadline.passed()) continue;
  if (!test::thorough(true, false)) return;
  auto last = connect(daemons.second.uri(), true);
  while (refusal(*last, "") && !deadline.passed()) continue;
  CHECK_FALSE(deadline.passed());
}

TEST_CASE("a hand-over is a takeover, and a holder that has left before it has no reservation") {
  if (!can_be_other_users()) return;
  Shared daemons;
  auto holder = connect(daemons.first.uri(), false);
  CHECK_FALSE(refusal(*holder, "batch"));
  {
    auto gone = connect(daemons.first.uri(), false);
    CHECK_FALSE(refusal(*gone, ""));
    daemons.until_kept(R"("partition":"")");
  }
  while (
      daemons.etcd.control({"get", "/resourced/holders", "--print-value-only"}).find(R"("partition":"")") !=
      std::string::npos)
    continue;
  daemons.first.terminate();
  daemons.second.until_leading();
  auto other = connect(daemons.second.uri(), true);
  CHECK(refusal(*other, "batch"));
  CHECK_FALSE(refusal(*other, ""));
}

TEST_SUITE_END();

}  // namespace resourced::e2e
