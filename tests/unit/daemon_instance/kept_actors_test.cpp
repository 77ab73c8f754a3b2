// The actors of drains, which an instance's KVS keeps beside Flux's event log.
#include "daemon/instance/kept_actors.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "proto/actor_json.hpp"

using namespace resourced;
using namespace resourced::daemon::instance;
using resourced::module::DrainGroup;
using resourced::text::Hostlist;
using resourced::text::IdSet;

namespace {

const Brokers four_brokers(Hostlist::parse("a,b,c,d"), 4);

std::string shown(const KeptActors& kept) {
  std::string text;
  for (const DrainGroup& drain : kept.drains) {
    text += fmt::format("{}@{} {}; ", drain.ranks.encode(), to_number(drain.timestamp),
                        drain.by ? proto::actor_name(*drain.by) : "-");
  }
  return text;
}

const std::string bc_drained =
    R"({"timestamp":10.0,"name":"drain","context":{"idset":"1-2","nodelist":"b,c","reason":"fan","overwrite":0,"by":{"userid":7}}})"
    "\n";
const std::string c_overwritten =
    R"({"timestamp":11.0,"name":"drain","context":{"idset":"2","nodelist":"c","reason":"disk","overwrite":1,"by":{"userid":8}}})"
    "\n";
const std::string b_undrained =
    R"({"timestamp":12.0,"name":"undrain","context":{"idset":"1","nodelist":"b","overwrite":0}})"
    "\n";

TEST_CASE("a drain has the actor of its event, and after another reason the one that gave that") {
  const std::vector<DrainGroup> both{{{{"fan"}, wall_time(10)}, IdSet{1, 2}}};
  const KeptActors kept = read_kept_actors(bc_drained, both, four_brokers);
  CHECK(shown(kept) == "1-2@10 7; ");
  CHECK_FALSE(kept.rewritten);
  const std::vector<DrainGroup> apart{{{{"disk"}, wall_time(10)}, IdSet{2}},
                                      {{{"fan"}, wall_time(10)}, IdSet{1}}};
  CHECK(shown(read_kept_actors(bc_drained + c_overwritten, apart, four_brokers)) == "2@10 8; 1@10 7; ");
}

TEST_CASE("a drain by another module has no actor") {
  CHECK(shown(read_kept_actors("", {{{{"fan"}, wall_time(10)}, IdSet{1}}}, four_brokers)) == "1@10 -; ");
  CHECK(shown(read_kept_actors(bc_drained, {{{{"fan"}, wall_time(15)}, IdSet{1}}}, four_brokers)) ==
        "1@15 -; ");
  CHECK(shown(read_kept_actors(bc_drained, {{{{"disk"}, wall_time(10)}, IdSet{1}}}, four_brokers)) ==
        "1@10 -; ");
  CHECK(shown(read_kept_actors(bc_drained, {{{{"fan"}, wall_time(10)}, IdSet{1, 3}}}, four_brokers)) ==
        "3@10 -; 1@10 7; ");
  CHECK(shown(read_kept_actors(bc_drained + b_undrained, {{{{"fan"}, wall_time(10)}, IdSet{1, 2}}},
                               four_brokers)) == "1@10 -; 2@10 7; ");
}

TEST_CASE("actors follow their hosts, and only those of present drains are kept") {
  const Brokers other(Hostlist::parse("c,d,a,b"), 4);
  const KeptActors kept =
      read_kept_actors(bc_drained + b_undrained, {{{{"fan"}, wall_time(10)}, IdSet{0}}}, other);
  CHECK(shown(kept) == "0@10 7; ");
  REQUIRE(kept.rewritten);
  CHECK(
      *kept.rewritten ==
      R"({"timestamp":10.0,"name":"drain","context":{"idset":"0","nodelist":"c","reason":"fan","overwrite":2,"by":{"userid":7}}})"
      "\n");
  const KeptActors again = read_kept_actors(*kept.rewritten, kept.drains, other);
  CHECK(shown(again) == "0@10 7; ");
  CHECK_FALSE(again.rewritten);
  CHECK(read_kept_actors(bc_drained + b_undrained, {}, four_brokers).rewritten == "");
}

TEST_CASE("a line that is no event is refused") {
  for (const char* line :
       {"x", "{}", "[]", R"({"timestamp":1.0,"name":"drain","context":{"idset":"1","by":7}})"}) {
    CAPTURE(line);
    CHECK_THROWS_AS(static_cast<void>(read_kept_actors(line, {}, four_brokers)), Error);
  }
}

}  // namespace
