// Updates to a scheduler: every change once, merged into one net change while it does not read.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "daemon/streams/outbox.hpp"
#include "proto/message.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::test {

using module::Delta;
using text::IdSet;

namespace {

constexpr proto::ClientId scheduler{1};

Delta up(const IdSet& ranks) {
  Delta delta;
  delta.up = ranks;
  return delta;
}

Delta down(const IdSet& ranks) {
  Delta delta;
  delta.down = ranks;
  return delta;
}

/// Subscribers of one client; all their events up to the tenth are on disk.
struct Streams {
  Streams() {
    clients.add(transport, scheduler, {}, {});
    outbox.committed(10, {});
  }
  streams::Subscribers::HolderId subscribe(std::uint32_t matchtag) {
    const auto key = registry.add(
        scheduler, proto::make_request("resource.acquire", matchtag, nullptr, proto::flag::streaming));
    const auto holder = subscribers.add(key);
    registry.set(key, streams::Scheduler{holder});
    return holder;
  }
  /// The responses so far, each after its matchtag.
  std::vector<std::string> told() {
    std::vector<std::string> texts;
    for (const proto::Message& message : transport.sent[scheduler])
      texts.push_back(std::to_string(message.matchtag) + " " + std::string(message.text()));
    return texts;
  }

  FakeTransport transport;
  peers::Clients clients;
  streams::Registry registry;
  NoNews no_news;
  streams::Outbox outbox{clients, no_news};
  streams::Subscribers subscribers{outbox, registry};
};

using Texts = std::vector<std::string>;

TEST_CASE("subscribers: a change is told once, to the holder that it concerns") {
  Streams stand;
  const auto first = stand.subscribe(1);
  const auto second = stand.subscribe(2);
  CHECK(first != second);
  stand.subscribers.update(1, second, down(IdSet{3}));
  CHECK(stand.told().empty());
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told() == Texts{R"(2 {"down":"3"})"});
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told().size() == 1);
  stand.subscribers.update(2, second, down(IdSet{4}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told() == Texts{R"(2 {"down":"3"})", R"(2 {"down":"4"})"});
  CHECK(stand.subscribers.merged() == 0);
}

TEST_CASE("subscribers: changes of a holder that does not read become one net change") {
  Streams stand;
  const auto holder = stand.subscribe(1);
  stand.transport.full.insert(scheduler);
  stand.subscribers.update(1, holder, down(IdSet{1, 2}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  stand.subscribers.update(2, holder, up(IdSet{2}));
  stand.subscribers.update(3, holder, down(IdSet{5}));
  CHECK(stand.subscribers.merged() == 2);
  stand.transport.full.clear();
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told() == Texts{R"(1 {"down":"1,5"})"});
}

TEST_CASE("subscribers: a change without an event replaces a response that found no room") {
  Streams stand;
  const auto holder = stand.subscribe(1);
  stand.transport.full.insert(scheduler);
  stand.subscribers.update(10, holder, down(IdSet{1}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  // Another scheduler returns a target, which is no event.
  stand.subscribers.update(10, holder, up(IdSet{2}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  stand.transport.full.clear();
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told() == Texts{R"(1 {"up":"2","down":"1"})"});
}

/// Merges news of an allocation, one after the other, and returns what is told of it.
std::string told_of(const std::vector<module::AllocationNews>& news) {
  Streams stand;
  const auto holder = stand.subscribe(1);
  stand.transport.full.insert(scheduler);
  log::Sequence after = 0;
  for (const module::AllocationNews& one : news) {
    Delta delta;
    delta.allocations[{"", "j"}] = one;
    stand.subscribers.update(++after, holder, delta);
    CHECK(stand.subscribers.flush({}, {}).empty());
  }
  stand.transport.full.clear();
  CHECK(stand.subscribers.flush({}, {}).empty());
  const Texts texts = stand.told();
  CHECK(texts.size() <= 1);
  return texts.empty() ? "" : texts.front().substr(2);
}

TEST_CASE("subscribers: of an allocation that changes again and again, what is true at the end is told") {
  module::Allocation made;
  made.name = {"", "j"};
  made.text = std::make_shared<const std::string>("{}");
  const auto present = std::make_shared<const module::Allocation>(std::move(made));
  const module::AllocationNews ended;
  const module::AllocationNews whole{present, {}, true};
  const module::AllocationNews fresh{.now = present, .whole = true, .made = true};
  const module::AllocationNews part{present, IdSet{1}};
  const module::AllocationNews other_part{present, IdSet{2}};
  const module::AllocationNews expired{present, {}, false, true};
  module::AllocationNews own_end;
  own_end.own = true;
  const module::AllocationNews own{present, {}, true, false, true};
  const char* const gone = R"({"freed":[{"partition":"","id":"j"}]})";
  const char* const is_whole = R"({"allocations":[{"id":"j","partition":"","R":{}}]})";

  CHECK(told_of({ended}) == gone);
  CHECK(told_of({part, other_part}) == R"({"freed":[{"partition":"","id":"j","ranks":"1-2"}]})");
  CHECK(told_of({part, ended}) == gone);
  CHECK(told_of({whole, ended}) == gone);
  CHECK(told_of({fresh}) == is_whole);
  CHECK(told_of({fresh, ended}).empty());
  CHECK(told_of({ended, fresh, ended}) == gone);
  CHECK(told_of({ended, whole}) == is_whole);
  CHECK(told_of({whole, part}) == is_whole);
  CHECK(told_of({expired, ended}) == gone);
  CHECK(told_of({expired, part}) ==
        R"({"freed":[{"partition":"","id":"j","ranks":"1"}],"expired":[{"partition":"","id":"j"}]})");
  // What the scheduler has done itself it knows, unless it does not know yet what came before.
  CHECK(told_of({own}).empty());
  CHECK(told_of({own_end}).empty());
  CHECK(told_of({own, own_end}).empty());
  CHECK(told_of({ended, own}) == is_whole);
  CHECK(told_of({part, own_end}) == gone);
  CHECK(told_of({own, part}) == R"({"freed":[{"partition":"","id":"j","ranks":"1"}]})");
}

TEST_CASE("subscribers: a numbered change has the number of the event up to which it is true") {
  Streams stand;
  const auto key = stand.registry.add(
      scheduler, proto::make_request("resource.acquire", 4, nullptr, proto::flag::streaming));
  const auto holder = stand.subscribers.add(key, true);
  stand.subscribers.update(3, holder, down(IdSet{1}));
  stand.subscribers.update(5, holder, down(IdSet{2}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told() == Texts{R"(4 {"down":"1-2","sequence":10})"});
}

TEST_CASE("subscribers: causes are those of the state that has been committed, for targets that have one") {
  Streams stand;
  const auto key = stand.registry.add(
      scheduler, proto::make_request("resource.acquire", 4, nullptr, proto::flag::streaming));
  const auto holder = stand.subscribers.add(key, false, true);
  module::State state;
  state.targets.online = IdSet{0, 2, 3, 4};
  state.targets.torpid = IdSet{3};
  state.exclude = IdSet{4};
  (void)state.targets.drains.drain(IdSet{2, 3}, {}, module::Overwrite::nothing);
  stand.subscribers.update(1, holder, down(IdSet{0, 1, 2, 3, 4, 5}));
  stand.subscribers.update(2, holder, up(IdSet{0}));
  Delta left;
  left.down = left.shrink = IdSet{5};
  stand.subscribers.update(3, holder, left);
  CHECK(stand.subscribers.flush({}, state).empty());
  CHECK(stand.told() == Texts{R"(4 {"down":"1-5","shrink":"5",)"
                              R"("cause":{"drained":"2-3","offline":"1","torpid":"3","excluded":"4"}})"});
}

TEST_CASE("subscribers: what was taken back before it was told is not told") {
  Streams stand;
  const auto holder = stand.subscribe(1);
  stand.subscribers.update(1, holder, down(IdSet{1}));
  stand.subscribers.update(2, holder, up(IdSet{1}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told().empty());
}

TEST_CASE("subscribers: a holder that is gone is told nothing, and what concerns it is passed over") {
  Streams stand;
  const auto holder = stand.subscribe(1);
  stand.subscribers.update(1, holder, down(IdSet{1}));
  stand.subscribers.remove(holder);
  stand.subscribers.update(2, holder, down(IdSet{2}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told().empty());
  stand.subscribers.remove(holder);
  // The number of a holder is not reused.
  CHECK(stand.subscribe(2) != holder);
}

TEST_CASE("subscribers: a client that turns out to be gone is told of") {
  Streams stand;
  const auto holder = stand.subscribe(1);
  stand.transport.gone.insert(scheduler);
  stand.subscribers.update(1, holder, down(IdSet{1}));
  CHECK(stand.subscribers.flush({}, {}) == std::vector{scheduler});
  CHECK(stand.subscribers.flush({}, {}).empty());
}

TEST_CASE("subscribers: a response of the client that waits for room is not overtaken by a change") {
  Streams stand;
  const auto holder = stand.subscribe(1);
  stand.transport.full.insert(scheduler);
  stand.outbox.push(0, streams::Response{scheduler, proto::make_response(proto::make_request("x.y", 9))}, {});
  stand.transport.full.clear();
  stand.subscribers.update(1, holder, down(IdSet{1}));
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told().empty());
  stand.outbox.flush();
  CHECK(stand.subscribers.flush({}, {}).empty());
  CHECK(stand.told() == Texts{"9 ", R"(1 {"down":"1"})"});
}

}  // namespace
}  // namespace resourced::daemon::test
