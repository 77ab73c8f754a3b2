// RFC 6 on the client: a matchtag is not reused while a response to its request may still arrive.
#include "proto/matchtag_pool.hpp"

#include <map>
#include <random>

#include <doctest/doctest.h>

#include "proto/message.hpp"
#include "tools.hpp"

using namespace resourced::proto;
using namespace resourced::proto::test;

namespace {

Message single(std::uint32_t tag) { return make_response(make_request("a.b", tag)); }
Message streamed(std::uint32_t tag) {
  return make_response(make_request("a.b", tag, nullptr, flag::streaming));
}
Message failed(std::uint32_t tag, int errnum) { return make_error(make_request("a.b", tag), errnum); }

}  // namespace

TEST_CASE("tags are unique, and none is 0") {
  MatchtagPool pool;
  std::map<std::uint32_t, int> seen;
  for (int i = 0; i < 1000; ++i) {
    ++seen[pool.allocate()];
  }
  CHECK(seen.size() == 1000);
  CHECK_FALSE(seen.contains(0));
  CHECK(pool.size() == 1000);
}

TEST_CASE("a plain response frees its tag") {
  MatchtagPool pool;
  const auto tag = pool.allocate();
  CHECK(pool.state(tag) == MatchtagState::pending);
  CHECK(pool.receive(single(tag)) == MatchtagState::pending);
  CHECK(pool.state(tag) == MatchtagState::unused);
  CHECK(pool.receive(single(tag)) == MatchtagState::unused);
}

TEST_CASE("a stream keeps its tag until its error response") {
  MatchtagPool pool;
  const auto tag = pool.allocate();
  CHECK(pool.receive(streamed(tag)) == MatchtagState::pending);
  CHECK(pool.receive(streamed(tag)) == MatchtagState::pending);
  CHECK(pool.state(tag) == MatchtagState::pending);
  CHECK(pool.receive(failed(tag, ENODATA)) == MatchtagState::pending);
  CHECK(pool.state(tag) == MatchtagState::unused);
}

TEST_CASE("a cancelled stream keeps its tag until its last response, which is for no one") {
  MatchtagPool pool;
  const auto tag = pool.allocate();
  CHECK(pool.cancel(tag));
  CHECK_FALSE(pool.cancel(tag));
  CHECK(pool.receive(streamed(tag)) == MatchtagState::cancelled);
  CHECK(pool.state(tag) == MatchtagState::cancelled);
  CHECK(pool.receive(failed(tag, ECANCELED)) == MatchtagState::cancelled);
  CHECK(pool.state(tag) == MatchtagState::unused);
  CHECK_FALSE(pool.cancel(tag));
}

TEST_CASE("strays do no harm") {
  MatchtagPool pool;
  const auto tag = pool.allocate();
  CHECK(pool.receive(single(tag + 1)) == MatchtagState::unused);
  CHECK(pool.receive(single(0)) == MatchtagState::unused);
  CHECK_FALSE(pool.cancel(tag + 1));
  CHECK(pool.state(tag) == MatchtagState::pending);
  CHECK(pool.size() == 1);
}

TEST_CASE("a freed tag is not the next to be used") {
  MatchtagPool pool;
  const auto first = pool.allocate();
  pool.receive(single(first));
  CHECK(pool.allocate() != first);
}

TEST_CASE("after the largest tag comes the smallest that is not out") {
  MatchtagPool pool(3, 4);
  CHECK(pool.allocate() == 1);
  CHECK(pool.allocate() == 2);
  CHECK(pool.allocate() == 3);
  pool.receive(single(2));
  CHECK(pool.allocate() == 4);
  pool.receive(single(4));
  CHECK(pool.allocate() == 2);
}

TEST_CASE("the number of tags out is bounded, cancelled ones included") {
  MatchtagPool pool(2);
  const auto one = pool.allocate();
  pool.cancel(pool.allocate());
  CHECK(errnum_of([&] { return pool.allocate(); }) == EAGAIN);
  pool.release(one);
  CHECK(errnum_of([&] { return pool.allocate(); }) == 0);
  pool.clear();
  CHECK(pool.size() == 0);
  CHECK(errnum_of([&] { return pool.allocate(); }) == 0);
}

TEST_CASE("random operations: no tag is given out while its last response is due") {
  constexpr unsigned seed = 20240615;
  CAPTURE(seed);
  std::mt19937 random(seed);
  MatchtagPool pool(16, 20);
  std::map<std::uint32_t, MatchtagState> due;
  for (int step = 0; step < 20000; ++step) {
    CAPTURE(step);
    auto chosen = due.begin();
    std::advance(chosen, due.empty() ? 0 : random() % due.size());
    switch (due.empty() ? 0 : random() % 4) {
      case 0:
        if (due.size() == 16) {
          REQUIRE(errnum_of([&] { return pool.allocate(); }) == EAGAIN);
        } else {
          const auto tag = pool.allocate();
          REQUIRE(tag != 0);
          REQUIRE(tag <= 20);
          REQUIRE(due.emplace(tag, MatchtagState::pending).second);
        }
        break;
      case 1:
        REQUIRE(pool.cancel(chosen->first) == (chosen->second == MatchtagState::pending));
        chosen->second = MatchtagState::cancelled;
        break;
      case 2:
        REQUIRE(pool.receive(streamed(chosen->first)) == chosen->second);
        break;
      default:
        REQUIRE(pool.receive(failed(chosen->first, ECANCELED)) == chosen->second);
        due.erase(chosen);
        break;
    }
    REQUIRE(pool.size() == due.size());
  }
}
