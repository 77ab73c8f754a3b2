#include "daemon/log/host_ids.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

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

}  // namespace
}  // namespace resourced::daemon::log
