// The fields of list that divide a state into rows, the states of status that have targets of other states,
// and rows without targets.
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/views/format.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"
#include "core/text/idset.hpp"

using namespace resourced;
using namespace resourced::cli::views;
using nlohmann::json;

namespace {

/// An R of node[0-7]: 4-7 have the property batch, 6-7 also gpu, and 7 is of the queue own.
json queued_r(const std::string& ranks) {
  return {{"version", 1},
          {"execution",
           {{"R_lite", {{{"rank", ranks}, {"children", {{"core", "0-3"}}}}}},
            {"nodelist", {"node[" + ranks + "]"}},
            {"properties", {{"batch", "4-7"}, {"gpu", "6-7"}, {"+own", "7"}}},
            {"starttime", 0.0},
            {"expiration", 0.0}}}};
}

std::string list_rows(const std::string& format, const QueueFacts& queues, const std::string& states = "up") {
  const auto no_r = json::parse(
      R"({"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[]}})");
  const json payload{{"all", queued_r("0-7")}, {"allocated", no_r}, {"down", no_r}, {"reported", ""}};
  OutputOptions options;
  options.format = format;
  options.no_header = true;
  SchedFilter filter;
  filter.states = parse_sched_states(states);
  return render(sched_view(payload, filter, fields_used(sched_columns(), format), queues), options);
}

/// Queues of batch nodes, of the nodes of `own`, and of all nodes.
QueueFacts three_queues() {
  return {.shown = {{"batch", text::IdSet::parse("4-7")},
                    {"own", text::IdSet::parse("7")},
                    {"wide", text::IdSet::parse("0-7")}},
          .names = {"batch", "own", "virtual", "wide"}};
}

std::string state_rows(const std::string& states, bool skip_empty = false, const char* allocated = "1,4,6") {
  const json payload{{"R", queued_r("0-7")},  {"drain", {{"4", {{"timestamp", 1.0}, {"reason", "disk"}}}}},
                     {"online", "0-5"},       {"offline", "6-7"},
                     {"exclude", "0"},        {"torpid", ""},
                     {"allocated", allocated}};
  ViewFilter filter;
  filter.states = parse_status_states(states);
  filter.skip_empty = skip_empty;
  OutputOptions options;
  options.format = "{state} {up} {nnodes} {ranks}";
  options.no_header = true;
  return render(status_view(payload, filter), options);
}

}  // namespace

TEST_SUITE("fields of list and states of status") {
  TEST_CASE("list: queue makes a row of the targets in the same queues") {
    CHECK(list_rows("{queue} {ranks}", three_queues()) == "wide 0-3\nbatch,wide 4-6\nbatch,own,wide 7\n");
    CHECK(list_rows("{ranks}", three_queues()) == "0-7\n");
    CHECK(list_rows("{queue} {ranks}", {}) == " 0-7\n");
  }

  TEST_CASE("list: propertiesx are the properties that are no queue") {
    CHECK(list_rows("{ranks} {propertiesx}", three_queues()) == "0-5\n6-7 gpu\n");
    CHECK(list_rows("{ranks} {propertiesx}", {}) == "0-3\n4-5 batch\n6 batch,gpu\n7 +own,batch,gpu\n");
    CHECK(list_rows("{ranks} {propertiesx} {queue}", three_queues()) ==
          "0-3  wide\n4-5  batch,wide\n6 gpu batch,wide\n7 gpu batch,own,wide\n");
  }

  TEST_CASE("list: a state without targets has one row, whatever the fields") {
    CHECK(list_rows("{state}|{queue}|{propertiesx}|{properties}|", three_queues(), "allocated") ==
          "allocated||||\n");
  }

  TEST_CASE("status: online is all that are online, whatever else they are") {
    CHECK(state_rows("online") == "avail yes 4 1-3,5\ndraining no 1 4\nexclude no 1 0\n");
    CHECK(state_rows("online,offline") == state_rows("all", true));
  }

  TEST_CASE("status: allocated is all that have allocations, whatever else they are") {
    CHECK(state_rows("allocated") == "allocated no 2 1,4\nallocated* no 1 6\n");
    CHECK(state_rows("allocated", false, "1-2") == "allocated yes 2 1-2\n");
    CHECK(state_rows("allocated", false, "7") == "allocated* no 1 7\n");
    CHECK(state_rows("allocated", false, "") == "allocated no 0\n");
    CHECK(state_rows("draining,allocated", false, "4") == "draining no 1 4\nallocated no 1 4\n");
  }

  TEST_CASE("rows without targets are left out if told to") {
    CHECK(state_rows("torpid,allocated,exclude", true, "") == "exclude no 1 0\n");
    CHECK(state_rows("torpid", true).empty());
  }
}
