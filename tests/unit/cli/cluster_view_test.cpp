// The rows of resourcectl cluster.
#include "cli/views/cluster_view.hpp"

#include <doctest/doctest.h>

namespace resourced::cli::views {
namespace {

using proto::topics::Cluster;

const Cluster cluster{"a",
                      7,
                      30,
                      {{"a", "tcp://a", "1.0", 29, {{}}},
                       {"b", "tcp://b", "1.0", 30, {{"inventory", "access"}}},
                       {"c", "tcp://c", "", 28, std::nullopt}}};

}  // namespace

TEST_CASE("the daemons of a cluster, with the groups of settings in which their files differ") {
  CHECK(render(cluster_view(cluster), {}) ==
        "NAME ROLE    EPOCH EVENTS BEHIND VERSION URI     DIFFERS\n"
        "a    leader      7     30      0 1.0     tcp://a -\n"
        "b    standby     -     30      0 1.0     tcp://b inventory,access\n"
        "c    standby     -     28      2 -       tcp://c unknown\n");
}

TEST_CASE("scripts get the groups as a list, and null where they are not known") {
  OutputOptions options;
  options.json = true;
  const std::string lines = render(cluster_view(cluster), options);
  CHECK(lines.find(R"("differs":[])") != std::string::npos);
  CHECK(lines.find(R"("differs":["inventory","access"])") != std::string::npos);
  CHECK(lines.find(R"("differs":null)") != std::string::npos);
}

}  // namespace resourced::cli::views
