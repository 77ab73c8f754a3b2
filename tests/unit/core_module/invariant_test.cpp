// Events that the module cannot have decided end the program: they would be told to schedulers and logged. In
// a log that was read they are an error.
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/module/drain_table.hpp"
#include "core/module/module.hpp"
#include "end_of.hpp"

namespace resourced::module {

using text::IdSet;

namespace {

/// Ranks 0 to 3: all online, 1 is drained, 2 is torpid.
Module present() {
  const IdSet ranks = IdSet::range(0, 3);
  const text::Hostlist hosts = text::Hostlist::parse("n[0-3]");
  const auto inventory = std::make_shared<const rset::ResourceSet>(
      std::vector<rset::ResourceGroup>{{ranks, IdSet{0}, IdSet{}}}, hosts);
  Module module;
  const auto apply = [&](EventBody body) { (void)module.apply({wall_time(1), std::move(body)}); };
  apply(RestartEvent{ranks, ranks, hosts});
  DefineEvent define;
  define.inventory = inventory;
  apply(std::move(define));
  apply(DrainEvent{{"broken"}, IdSet{1}, inventory->hosts(IdSet{1})});
  apply(TorpidEvent{IdSet{2}});
  REQUIRE(module.available() == IdSet{0, 3});
  return module;
}

/// Events that name two ranks and do not change the state of one of them.
std::vector<EventBody> bad_events() {
  return {OnlineEvent{IdSet{0, 4}}, OfflineEvent{IdSet{0, 4}}, TorpidEvent{IdSet{0, 2}},
          LivelyEvent{IdSet{0, 2}}, UndrainEvent{IdSet{0, 1}, {}, std::nullopt}};
}

/// Applies an event, and returns what the program says as it aborts; "" if it goes on.
std::string broken_by(const EventBody& body) {
  Module module = present();
  const test::End end = test::end_of([&] { (void)module.apply({wall_time(2), body}); });
  CHECK(end.signal == (end.said.empty() ? 0 : SIGABRT));
  return end.said;
}

TEST_CASE("an event of states that names a target which it does not change ends the program") {
  CHECK(broken_by(OfflineEvent{IdSet{0, 3}}).empty());
  for (const EventBody& body : bad_events())
    CHECK(broken_by(body).find("broken invariant: ") != std::string::npos);
}

TEST_CASE("such an event that was read is refused") {
  const Module module = present();
  CHECK_NOTHROW(require_next(module.state(), OfflineEvent{IdSet{0, 3}}));
  for (const EventBody& body : bad_events()) {
    CHECK_THROWS_WITH_AS(require_next(module.state(), body), "it does not follow from the events before it",
                         Error);
  }
}

}  // namespace
}  // namespace resourced::module
