// Two daemons whose configuration files differ: the standby reports it, and serves its own files after a
// takeover.
#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;
using Groups = std::vector<std::string>;

/// A cluster whose first daemon leads with eight hosts; the second one has four.
struct Differing {
  Etcd etcd;
  Node first{"a", etcd.toml()};
  // Its entry has to outlive a stop of the daemon on a busy machine.
  Node second{name_after(first, "b"), etcd.toml(), "", 10 * usual_lease, "test[0-3]"};
  Ctl ctl{both(first, second)};

  /// Waits until this daemon reports that it is ready with this text.
  static void until_ready(const Node& node, const std::string& text) {
    until_serving(node.uri());
    client::Connection connection(node.uri());
    const Deadline deadline(patience);
    std::string found;
    while (found != text && !deadline.passed()) {
      try {
        found = connection.call("resource.ready", json::object(), patience).at("text");
      } catch (const Error& not_yet) {
        found = not_yet.what();
      }
    }
    CHECK(found == text);
  }
  /// Waits until `resourcectl cluster` shows these groups for the second daemon.
  void until_shown(const json& groups) const {
    const Deadline deadline(patience);
    json found = "not listed";
    while (found != groups && !deadline.passed()) {
      const std::string lines = ctl.output({"cluster", "show", "--json"});
      const std::size_t at = lines.find(R"({"name":"b")");
      if (at != std::string::npos) found = json::parse(lines.substr(at)).at("differs");
    }
    CHECK(found == groups);
  }
  static void rewrite(const Node& node, const std::string& from, const std::string& to) {
    std::string text = read_file(node.dir() / "resourced.toml");
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    node.dir().write("resourced.toml", text.replace(at, from.size(), to));
  }
  [[nodiscard]] std::string follows() const { return fmt::format("standby, a leads at {}", first.uri()); }
};

}  // namespace

TEST_SUITE_BEGIN("cluster files");

TEST_CASE_FIXTURE(Differing, "a standby whose files differ says so until a reload makes them equal") {
  const std::string says = follows() + "; its files differ from the leader's: inventory";
  until_ready(second, says + "\n");
  until_shown(Groups{"inventory"});
  CHECK(ctl.output({"cluster"}).find(second.uri() + " inventory\n") != std::string::npos);
  CHECK(second.log().find("warning: " + says) != std::string::npos);
  // A standby reads its files at a reload, and applies them once it leads.
  rewrite(second, "test[0-3]", "test[0-7]");
  rewrite(second, "[cluster]", "[access]\nlocal = []\n[cluster]");
  second.process().signal(SIGHUP);
  until_ready(second, follows() + "; its files differ from the leader's: access\n");
  until_shown(Groups{"access"});
  // A reload of the leader changes the comparison, too.
  rewrite(first, "[cluster]", "[access]\nlocal = []\n[cluster]");
  first.process().signal(SIGHUP);
  until_ready(second, follows() + "\n");
  until_shown(Groups{});
}

TEST_CASE_FIXTURE(Differing,
                  "a daemon that takes over serves its own files, and keeps what it cannot serve") {
  ctl.done({"drain", "test1", "of both"});
  ctl.done({"drain", "test6", "of the first alone"});
  ctl.done({"property", "add", "fast", "test5"});
  until_shown(Groups{"inventory"});
  first.kill(etcd);
  second.until_leading();
  const Ctl taken(second.uri());
  CHECK(taken.output({"status", "-o", "{nodelist}"}).find("test[4-7]") == std::string::npos);
  CHECK(taken.run({"drain", "test7", "x"}).status == 1);
  CHECK(taken.output({"drain", "-o", "{nodelist} {reason}"}) == "NODELIST REASON\ntest1 of both\n");
  taken.done({"drain", "test2", "of the second"});
  first.start();
  const std::string says = fmt::format("standby, b leads at {}", second.uri());
  until_ready(first, says + "; its files differ from the leader's: inventory\n");
  const Deadline deadline(patience);
  while (ctl.output({"cluster"}).find("\na ") == std::string::npos && !deadline.passed()) continue;
  ctl.done({"cluster", "hand-over", "a"});
  const std::string drains = Ctl(first.uri()).output({"drain", "-n", "-o", "{nodelist} {reason}"});
  for (const char* drain : {"test1 of both\n", "test6 of the first alone\n", "test2 of the second\n"})
    CHECK(drains.find(drain) != std::string::npos);
  CHECK(std::ranges::count(drains, '\n') == 3);
  CHECK(Ctl(first.uri()).output({"show", "test5"}).find("fast") != std::string::npos);
}

TEST_CASE_FIXTURE(Differing, "a daemon of a version that tells no files is not called different") {
  until_shown(Groups{"inventory"});
  // The entry of an earlier version has no digests. The stopped daemon would write its own entry again only
  // after a change.
  second.process().signal(SIGSTOP);
  etcd.control({"put", "--ignore-lease", "/resourced/members/b",
                fmt::format(R"({{"uri":"{}","applied":1,"version":"0.0.1"}})", second.uri())});
  until_shown(nullptr);
  CHECK(ctl.output({"cluster"}).find(second.uri() + " unknown\n") != std::string::npos);
  // Invalid digests count as unknown.
  for (const char* files : {"1", "[]", R"({"inventory":{},"exclude":"","monitor":["x"]})"}) {
    etcd.control({"put", "--ignore-lease", "/resourced/members/b",
                  fmt::format(R"({{"uri":"{}","applied":1,"files":{}}})", second.uri(), files)});
    until_shown(nullptr);
  }
  second.process().signal(SIGCONT);
}

TEST_SUITE_END();

}  // namespace resourced::e2e
