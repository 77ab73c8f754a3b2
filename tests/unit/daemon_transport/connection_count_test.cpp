#include "daemon/transport/connection_count.hpp"

#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

namespace resourced::daemon::transport {
namespace {

TEST_CASE("each peer has its own limit") {
  ConnectionCount count({.per_peer = 2});
  CHECK(count.add("uid 1"));
  CHECK(count.add("uid 1"));
  CHECK_FALSE(count.add("uid 1"));
  CHECK(count.add("uid 2"));
  count.remove("uid 1");
  CHECK(count.add("uid 1"));
  CHECK_FALSE(count.add("uid 1"));
}

TEST_CASE("a limit of 0 means no limit") {
  ConnectionCount count({});
  for (int i = 0; i < 1000; ++i) CHECK(count.add("uid 1"));
  CHECK(count.of("uid 1") == 1000);
}

TEST_CASE("all peers together have a limit, and the owner is let in beyond it") {
  ConnectionCount count({.per_peer = 2, .of_others = 3, .owners = {"uid 0"}});
  CHECK(count.add("uid 1"));
  CHECK(count.add("uid 1"));
  CHECK(count.add("uid 2"));
  CHECK_FALSE(count.add("uid 3"));
  CHECK(count.add("uid 0"));
  CHECK(count.add("uid 0"));
  CHECK_FALSE(count.add("uid 0"));
  count.remove("uid 0");
  CHECK_FALSE(count.add("uid 3"));
  count.remove("uid 1");
  CHECK(count.add("uid 3"));
}

TEST_CASE("a crowd that leaves is reported until no more leave, and once after that") {
  ConnectionCount count({});
  const auto remove = [&](int connections) {
    for (int i = 0; i < connections; ++i) count.remove("uid 1");
  };
  CHECK_FALSE(count.has_emptied(4));
  for (int i = 0; i < 20; ++i) CHECK(count.add("uid 1"));
  CHECK_FALSE(count.has_emptied(4));
  remove(9);
  CHECK_FALSE(count.has_emptied(4));
  remove(1);
  CHECK(count.has_emptied(4));
  remove(3);
  CHECK(count.has_emptied(4));
  CHECK(count.has_emptied(4));
  CHECK_FALSE(count.has_emptied(4));
  remove(3);
  CHECK_FALSE(count.has_emptied(4));
}

TEST_CASE("the end of a connection that was not counted changes nothing") {
  ConnectionCount count({.per_peer = 1});
  count.remove("uid 1");
  CHECK(count.of("uid 1") == 0);
  CHECK(count.add("uid 1"));
  count.remove("uid 2");
  CHECK_FALSE(count.add("uid 1"));
}

TEST_CASE("the count is that of a model under random operations") {
  constexpr unsigned seed = 5;
  INFO("seed ", seed);
  std::mt19937 random(seed);
  constexpr std::size_t limit = 3;
  ConnectionCount count({.per_peer = limit});
  std::map<std::string, std::size_t> model;
  for (int i = 0; i < 10000; ++i) {
    const std::string peer(1, static_cast<char>('a' + random() % 4));
    if (random() % 2 == 0) {
      CHECK(count.add(peer) == (model[peer] < limit));
      if (model[peer] < limit) ++model[peer];
    } else {
      count.remove(peer);
      if (model[peer] > 0) --model[peer];
    }
    CHECK(count.of(peer) == model[peer]);
  }
}

}  // namespace
}  // namespace resourced::daemon::transport
