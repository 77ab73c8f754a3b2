// What a daemon that takes over finds in its store: which targets were online.
#include "daemon/takeover.hpp"

#include <cerrno>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "daemon/log/sqlite.hpp"
#include "daemon/log/store.hpp"
#include "os/log.hpp"
#include "past_history.hpp"

namespace resourced::daemon::test {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

// The store of a stand whose daemon has ended.
log::Store& reopened(Stand& stand) {
  stand.store->stop();
  stand.service.reset();
  stand.store.reset();
  stand.store = std::make_unique<log::Store>(stand.dir.file("state"));
  return *stand.store;
}

TEST_CASE(
    "the states after the last event are what resource.status told, over random histories and restarts") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    History history(seed);
    history.run(50);
    const json told = history.status();
    const auto states = last_states(reopened(history.stand));
    REQUIRE(states);
    CHECK(states->states.online.encode() == told["online"]);
    CHECK(states->inventory.to_json() == told["R"]);
  }
}

TEST_CASE("without a snapshot, or with a damaged one, nothing is known of the last states") {
  resourced::os::set_log_level(resourced::os::Level::off);
  const resourced::test::TempDir dir;
  log::Store empty(dir.file("state"));
  CHECK_FALSE(last_states(empty));

  Stand stand;
  log::Store& store = reopened(stand);
  CHECK(last_states(store));
  log::Database(stand.dir.file("state") + "/" + log::store_file).execute("UPDATE snapshot SET sum = sum + 1");
  CHECK_FALSE(last_states(store));
}

TEST_CASE("targets that were online are found by their hosts, and torpid ones are not among them") {
  module::Snapshot states;
  const IdSet ranks = IdSet::range(0, 3);
  states.inventory = ResourceSet({{ranks, IdSet::range(0, 3), IdSet{}}}, Hostlist::parse("a,a,b,c"));
  states.states.online = IdSet::parse("0-1,3");
  states.states.torpid = IdSet::parse("3");
  CHECK(online_before(states, states.inventory).encode() == "0-1");
  const ResourceSet next({{ranks, IdSet::range(0, 3), IdSet{}}}, Hostlist::parse("c,b,a,d"));
  CHECK(online_before(states, next).encode() == "2");
}

}  // namespace
}  // namespace resourced::daemon::test
