// States wait for hosts that the inventory lacks, and a forget drops them.
#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include <doctest/doctest.h>

#include "ledger_world.hpp"

namespace resourced::engine::ledger_tests {
namespace {

using module::DrainCommand;
using module::ForgetCommand;
using module::PropertyCommand;

/// Drains, a scheduled drain and a property of n4 to n7, of which the inventory has n4 alone.
World lacking_three() {
  World before("n[0-7]");
  before.step(DrainCommand{{"fan"}, "4-6", {}});
  DrainCommand later{{"power"}, "5,7", {}};
  later.from = wall_time(1000);
  before.step(later);
  before.step(PropertyCommand{PropertyCommand::Op::add, "fast", "7"});
  return before.restarted("n[0-4]");
}

std::string forget_refused(World& it, int errnum, const char* hosts) {
  return it.refusal(errnum, [&] { it.step(ForgetCommand{hosts}); });
}

TEST_CASE("forget drops the drains, scheduled drains and properties that wait for hosts, and nothing else") {
  World it = lacking_three();
  const Effects effects = it.step(ForgetCommand{"n7,n[5,5]"});
  REQUIRE(effects.records.size() == 1);
  CHECK(std::get<module::ForgetEvent>(effects.records[0].event.body).nodelist.encode() == "n[5,7]");
  CHECK(effects.records[0].hosts.encode() == "n[5,7]");
  CHECK(effects.records[0].ranks.empty());
  CHECK(effects.updates.empty());
  const module::AbsentStates& absent = it.engine.absent();
  REQUIRE(absent.drains.size() == 1);
  CHECK(absent.drains[0].target.host == "n6");
  CHECK(absent.scheduled.empty());
  CHECK(absent.properties.empty());
  CHECK(it.fold.state.absent.drains == absent.drains);

  const World after = it.restarted("n[0-7]");
  CHECK(after.engine.module().drains().ranks() == IdSet{4, 6});
  CHECK(after.engine.module().scheduled_drains().ranks().empty());
  CHECK(after.engine.module().inventory().properties().empty());
}

TEST_CASE("a forget of hosts for which nothing waits is refused as a whole, with the way out") {
  World it = lacking_three();
  CHECK(forget_refused(it, EEXIST, "n[4-5]") == "n4 is in the inventory: end its drains with undrain");
  CHECK(forget_refused(it, ENOENT, "n[7-8]") == "nothing waits for n8: see resourcectl list --absent");
  CHECK(forget_refused(it, EINVAL, "") == "no host is named");
  CHECK(it.engine.absent().drains.size() == 2);
  it.step(ForgetCommand{"n[5-7]"});
  CHECK(forget_refused(it, ENOENT, "n5") == "nothing waits for n5: see resourcectl list --absent");
}

TEST_CASE("a forget of a host that an allocation has is refused until the allocation is freed") {
  World before("n[0-7]");
  before.alloc("j1", part("3-6", "0", "n[3-6]"));
  before.step(DrainCommand{{"fan"}, "5", {}});
  SUBCASE("the inventory lacks the host") {
    World it = before.restarted("n[0-4]");
    CHECK(forget_refused(it, EBUSY, "n[5-6]") ==
          "allocation j1 still has n[5-6]: resourcectl free j1 ends it");
    it.free({"j1"});
    it.step(ForgetCommand{"n5"});
    CHECK(it.engine.absent().drains.empty());
  }
  SUBCASE("the inventory lacks some of its cores") {
    before.alloc("j2", part("7", "3", "n7"));
    World it = before.restarted("n[0-7]", 2);
    CHECK(forget_refused(it, EBUSY, "n7") == "allocation j2 still has n7: resourcectl free j2 ends it");
  }
  SUBCASE("the host was removed for good") {
    before.step(module::ShrinkCommand{"6"});
    CHECK(forget_refused(before, EBUSY, "n6") == "allocation j1 still has n6: resourcectl free j1 ends it");
  }
}

TEST_CASE("where targets share a host, forget drops what waits for those that the inventory lacks") {
  World before("h,h,k");
  before.step(DrainCommand{{"fan"}, "0-1", {}});
  World it = before.restarted("h,k");
  it.step(ForgetCommand{"h"});
  CHECK(it.engine.absent().drains.empty());
  CHECK(it.engine.module().drains().ranks() == IdSet{0});
  CHECK(forget_refused(it, EEXIST, "h") == "h is in the inventory: end its drains with undrain");
}

TEST_CASE("a host that was removed for good stays away after a forget") {
  World before("n[0-3]");
  before.step(DrainCommand{{"fan"}, "2", {}});
  before.step(module::ShrinkCommand{"3"});
  World it = before.restarted("n[0-1]");
  CHECK(forget_refused(it, ENOENT, "n3") == "nothing waits for n3: see resourcectl list --absent");
  it.step(ForgetCommand{"n2"});
  CHECK(it.restarted("n[0-3]").engine.module().inventory().ranks() == IdSet::range(0, 2));
}

}  // namespace
}  // namespace resourced::engine::ledger_tests
