// Clients with the URIs of daemons that do not form one cluster: `prefix` is wrong, or [cluster] is missing.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cluster_node.hpp"
#include "harness/ctl.hpp"
#include "shared_etcd.hpp"

namespace resourced::e2e {
namespace {

using Etcd = test::SharedEtcd;

/// The leader of a cluster, to which a test adds a daemon that should be its standby.
struct Mixed {
  Etcd etcd;
  TempDir dir;
  Node first{"a", etcd.toml()};

  Mixed() { first.until_leading(); }

  void each_client_refuses(const std::string& other, const std::string& standing_of_other) const {
    const std::string uris = first.uri() + "," + other;
    const std::string begin = "these daemons are not of one cluster: " + first.uri() + " leads cluster ";
    const std::string end = ", " + other + " " + standing_of_other;
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"drain", "1", "test"},
                                               {"status"},
                                               {"eventlog"},
                                               {"eventlog", "-F"},
                                               {"status", "--watch"},
                                               {"acquire"},
                                               {"acquire", "--wait"},
                                               {"top"},
                                               {"cluster"},
                                               {"cluster", "hand-over"}}) {
      CAPTURE(command[0]);
      const Outcome outcome = Ctl(uris).run(command);
      CHECK(outcome.status == 1);
      CHECK(outcome.out == "");
      CHECK(outcome.err.starts_with("resourcectl: " + begin));
      CHECK(outcome.err.find(end) != std::string::npos);
    }
    Process agent({RESOURCED_BIN "/resource-agent", "--uri", uris, "--hostname", "test0", "--synthetic",
                   "package:1 core:4 pu:1"},
                  {.error_file = dir / "agent"});
    const Deadline deadline(patience);
    while (read_file(dir / "agent").find(begin) == std::string::npos && !deadline.passed()) continue;
    CHECK(read_file(dir / "agent").find(end) != std::string::npos);
    for (const std::string& uri : {first.uri(), other}) {
      client::Connection connection(uri);
      CHECK(connection.call("resource.status").at("drain") == json::object());
    }
  }
};

}  // namespace

TEST_SUITE_BEGIN("cluster mix");

TEST_CASE_FIXTURE(Mixed, "a list with the leaders of two clusters is refused by each client") {
  Node second("b", etcd.toml(), "prefix = \"/resuorced/\"\n");
  second.until_leading();
  each_client_refuses(second.uri(), "leads cluster ");
}

TEST_CASE_FIXTURE(Mixed, "a list with a leader and a daemon in no cluster is refused by each client") {
  const TempDir directory;
  const Daemon second(directory);
  each_client_refuses(second.uri(), "is in no cluster");
}

TEST_CASE_FIXTURE(Mixed, "a list in which only the leader runs is not refused") {
  Ctl(first.uri() + ",ipc://" + (dir / "nobody").string()).done({"drain", "1", "test"});
}

TEST_SUITE_END();

}  // namespace resourced::e2e
