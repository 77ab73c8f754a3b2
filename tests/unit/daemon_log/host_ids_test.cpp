#include "daemon/log/host_ids.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/event_rows.hpp"
#include "daemon/log/store_writer.hpp"
#include "store_samples.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {
namespace {

using text::Hostlist;
using text::IdSet;

TEST_CASE("hosts get numbers in order, and keep them in whatever order a list names them") {
  HostIds ids;
  ids.add("old");
  const auto first = ids.number(Hostlist::parse("node[1-3]"));
  CHECK(first.ids == IdSet::range(1, 3));
  CHECK(first.added == std::vector<std::string>{"node1", "node2", "node3"});
  const auto second = ids.number(Hostlist::parse("node3,node1,new,node2,old"));
  CHECK(second.ids == IdSet::range(0, 4));
  CHECK(second.added == std::vector<std::string>{"new"});
  CHECK(ids.size() == 5);

  CHECK(ids.find("node2") == 2);
  CHECK_FALSE(ids.find("node4"));
  CHECK(ids.find(Hostlist::parse("new,other,node[2-4],old")) == IdSet{0, 2, 3, 4});
}

TEST_CASE("a store in which two hosts have one name is refused") {
  const test::TempDir dir;
  const std::string path = dir.file("resourced.sqlite");
  StoreWriter writer(path);
  writer.commit({drain_record(1, 0, "a", "x")});
  Statement(writer.database(), "INSERT INTO known_host(id, name, sum) VALUES (1, 'a', ?)")
      .bind(1, host_sum(1, "a"))
      .run();
  HostIds ids;
  CHECK_THROWS_WITH_AS(load_hosts(writer.database(), ids), doctest::Contains("host 1 of known_host"), Error);
}

}  // namespace
}  // namespace resourced::daemon::log
