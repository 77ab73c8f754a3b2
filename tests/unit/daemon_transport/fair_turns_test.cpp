#include <string>

#include <doctest/doctest.h>

#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::transport {
namespace {

std::string order(FairTurns<char>& turns) {
  std::string all;
  while (!turns.empty()) all += turns.next();
  return all;
}

TEST_CASE("the connections of one peer take turns in the order in which they asked") {
  FairTurns<char> turns;
  for (const char connection : {'a', 'b', 'c'}) turns.ask("uid 1", connection);
  CHECK(order(turns) == "abc");
}

TEST_CASE("a peer waits for one turn of each other peer, however many connections that has") {
  FairTurns<char> turns;
  for (const char connection : {'a', 'b', 'c', 'd'}) turns.ask("uid 1", connection);
  turns.ask("uid 2", 'X');
  turns.ask("uid 3", 'Y');
  CHECK(order(turns) == "aXYbcd");
}

TEST_CASE("a peer that asks again comes after the others") {
  FairTurns<char> turns;
  turns.ask("uid 1", 'a');
  turns.ask("uid 1", 'b');
  turns.ask("uid 2", 'X');
  CHECK(turns.next() == 'a');
  CHECK(turns.next() == 'X');
  turns.ask("uid 2", 'Y');
  CHECK(order(turns) == "bY");
}

}  // namespace
}  // namespace resourced::daemon::transport
