// Targets that consumers of the journal name: equal ones are shared, and their memory is counted.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/store.hpp"
#include "daemon/streams/journal.hpp"
#include "service_stand.hpp"
#include "temp_dir.hpp"

namespace resourced::daemon::log {

using rset::ResourceSet;
using text::IdSet;

namespace {

ResourceSet set_of(IdSet::Id targets) {
  return ResourceSet({{IdSet::range(0, targets - 1), {0}, {}}},
                     text::Hostlist::parse(fmt::format("n[0-{}]", targets - 1)));
}

struct Fixture {
  resourced::test::TempDir dir;
  peers::Clients clients;
  streams::Registry registry;
  test::NoNews no_news;
  streams::Outbox outbox{clients, no_news};
  Store store{dir.path()};
  streams::Journal journal{outbox, registry, store, 100, [] {}};
};

/// Adds named targets until the follower has reached its limit. Returns how many were accepted.
std::size_t fill(streams::Journal& journal, const ResourceSet& inventory, const std::string& follower,
                 std::vector<std::shared_ptr<NamedTargets>>& named) {
  constexpr std::size_t length = 100000;
  for (std::size_t count = 0;; ++count) {
    try {
      named.push_back(
          journal.share(fmt::format("x{}{}", count, std::string(length, 'x')), inventory, follower));
    } catch (const Error& error) {
      CHECK(error.errnum() == EBUSY);
      CHECK(std::string(error.what()).find(follower) != std::string::npos);
      CHECK(std::string(error.what()).find("16777216 bytes") != std::string::npos);
      return count;
    }
  }
}

TEST_CASE("the same text of the same inventory is looked up once, for whoever it is") {
  Fixture fixture;
  const ResourceSet inventory = set_of(8);
  const auto first = fixture.journal.share("n[0-3]", inventory, "uid 1");
  CHECK(fixture.journal.share("n[0-3]", inventory, "uid 1") == first);
  CHECK(fixture.journal.share("n[0-3]", inventory, "uid 2") == first);
  first->find();
  CHECK(first->targets().ranks == IdSet::range(0, 3));
  CHECK(fixture.journal.share("n[0-3]", inventory, "uid 1") == first);

  SUBCASE("properties do not matter to it") {
    ResourceSet changed = inventory;
    changed.add_property("p", IdSet{1});
    CHECK(fixture.journal.share("n[0-3]", changed, "uid 1") == first);
  }
  SUBCASE("another text is something else, and has the same inventory") {
    const auto other = fixture.journal.share("n[0-4]", inventory, "uid 1");
    CHECK(other != first);
    CHECK(other->inventory() == first->inventory());
    // Only the last text is remembered.
    CHECK(fixture.journal.share("n[0-3]", inventory, "uid 1") != first);
  }
  SUBCASE("so is the same text of an inventory with other targets, though they have the same hosts") {
    const ResourceSet equal = set_of(8);
    const auto other = fixture.journal.share("n[0-3]", equal, "uid 1");
    CHECK(other != first);
    CHECK(&other->inventory()->nodelist() == &equal.nodelist());
  }
}

TEST_CASE("a text that is refused is refused to all who share it, with the same words") {
  Fixture fixture;
  const ResourceSet inventory = set_of(8);
  const auto named = fixture.journal.share("n[", inventory, "uid 1");
  for (int time = 0; time < 2; ++time) {
    named->find();
    REQUIRE(named->refusal());
    CHECK(named->refusal()->errnum() == EINVAL);
    CHECK(std::string(named->refusal()->what()).find("not a hostlist") != std::string::npos);
  }
}

TEST_CASE("the targets that one follower names take so much memory and no more") {
  Fixture fixture;
  const ResourceSet inventory = set_of(8);
  std::vector<std::shared_ptr<NamedTargets>> named;
  const std::size_t most = fill(fixture.journal, inventory, "uid 1", named);
  CHECK(most == streams::Journal::max_filter_bytes / (100000 + NamedTargets::envelope));
  // Other followers have their own limit.
  CHECK_NOTHROW((void)fixture.journal.share("n[0-3]", inventory, "uid 2"));
  // Dropping one makes room for another one.
  named.erase(named.begin());
  CHECK(fill(fixture.journal, inventory, "uid 1", named) == 1);
  // Once they are looked up, named targets take little memory, however they were written.
  named.clear();
  std::string names = "n0";
  for (int i = 0; i < 16000; ++i) names += ",n1";
  std::vector<std::shared_ptr<NamedTargets>> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(fixture.journal.share(fmt::format("{},n{}", names, i % 8), inventory, "uid 1"));
    many.back()->find();
  }
  CHECK(many.front()->targets().ranks == IdSet::range(0, 1));
  CHECK(many.back()->targets().ranks == IdSet{0, 1, 7});
}

TEST_CASE("followers whose targets outlived their journals are forgotten, however many addresses come") {
  Fixture fixture;
  const ResourceSet inventory = set_of(8);
  // The targets outlive the journal when its client disconnects during their look-up.
  for (int i = 0; i < 10000; ++i) (void)fixture.journal.share("n1", inventory, fmt::format("address {}", i));
  CHECK(fixture.journal.followers() <= 64);
  // Named targets in use remain counted.
  std::vector<std::shared_ptr<NamedTargets>> named;
  (void)fill(fixture.journal, inventory, "uid 1", named);
  for (int i = 0; i < 10000; ++i) (void)fixture.journal.share("n1", inventory, fmt::format("address {}", i));
  CHECK_THROWS_AS((void)fixture.journal.share(std::string(100000, 'y'), inventory, "uid 1"), Error);
}

TEST_CASE("hosts that are not there take room for as long as they are asked for") {
  Fixture fixture;
  const ResourceSet inventory = set_of(8);
  std::vector<std::shared_ptr<NamedTargets>> named;
  const std::string name(1000, 'x');
  for (std::size_t i = 0;; ++i) {
    std::string text = fmt::format("gone{}", i);
    for (int host = 0; host < 100; ++host) text += fmt::format(",{}{}", name, host);
    try {
      named.push_back(fixture.journal.share(std::move(text), inventory, "uid 1"));
    } catch (const Error& error) {
      CHECK(error.errnum() == EBUSY);
      break;
    }
    named.back()->find();
    REQUIRE(named.back()->targets().strangers.size() == 101);
    REQUIRE(i < 200);
  }
  CHECK(named.size() > 100);
}

}  // namespace
}  // namespace resourced::daemon::log
