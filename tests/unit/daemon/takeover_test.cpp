// A daemon that takes over learns from its store which targets were online.
#include "daemon/takeover.hpp"

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "daemon/log/store.hpp"
#include "past_history.hpp"

namespace resourced::daemon::test {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

// The store of a daemon that has ended, opened again.
log::Store& reopened(Stand& stand) {
  stand.store->stop();
  stand.service.reset();
  stand.store.reset();
  stand.store = std::make_unique<log::Store>(stand.dir.file("state"));
  return *stand.store;
}

TEST_CASE("the state of the log is what resource.status told, over random histories and restarts") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    History history(seed);
    history.run(50);
    const json told = history.status();
    const module::State state = reopened(history.stand).load();
    CHECK(state.targets.online.encode() == told["online"]);
    CHECK(state.inventory.to_json() == told["R"]);
  }
}

TEST_CASE("a daemon that was away for longer than the grace keeps no node online") {
  const Seconds grace(60);
  const Seconds interval(5);
  const WallTime now = wall_time(1e9);
  const auto kept = [&](Seconds away) { return grace_at_restart(now - away, now, grace, interval); };
  CHECK(kept(Seconds(0)) == grace);
  CHECK(kept(grace + interval) == grace);
  CHECK(kept(grace + interval + Seconds(1)) == Seconds(0));
  CHECK(kept(Seconds(-1)) == Seconds(0));
  CHECK(grace_at_restart(std::nullopt, now, grace, interval) == Seconds(0));
  CHECK(grace_at_restart(now, now, Seconds(0), interval) == Seconds(0));
}

TEST_CASE("targets that were online are found by their hosts, and torpid ones are not among them") {
  module::State states;
  const IdSet ranks = IdSet::range(0, 3);
  states.inventory = ResourceSet({{ranks, IdSet::range(0, 3), IdSet{}}}, Hostlist::parse("a,a,b,c"));
  states.targets.online = IdSet::parse("0-1,3");
  states.targets.torpid = IdSet::parse("3");
  CHECK(online_before(states, states.inventory).encode() == "0-1");
  const ResourceSet next({{ranks, IdSet::range(0, 3), IdSet{}}}, Hostlist::parse("c,b,a,d"));
  CHECK(online_before(states, next).encode() == "2");
}

}  // namespace
}  // namespace resourced::daemon::test
