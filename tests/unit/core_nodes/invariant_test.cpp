// A caller that breaks the contract of the monitor's lists and look-up ends the program: going on would write
// to memory that they do not own.
#include <csignal>

#include <doctest/doctest.h>

#include "core/nodes/monitored_target.hpp"
#include "end_of.hpp"

namespace resourced::nodes {
namespace {

using List = TargetList<&MonitoredTarget::by_heard>;

bool breaks(const auto& work) {
  const test::End end = test::end_of(work);
  return end.signal == SIGABRT && end.said.find("broken invariant: ") != std::string::npos;
}

TEST_CASE("targets by rank: only a target that is known can be erased") {
  TargetPages targets;
  (void)targets.get(3);
  CHECK(breaks([&] { targets.erase(4); }));     // unknown rank on the page of a known one
  CHECK(breaks([&] { targets.erase(1000); }));  // unknown rank without a page
  CHECK(breaks([&] {
    targets.erase(3);
    targets.erase(3);
  }));
  targets.erase(3);
  CHECK(targets.size() == 0);
}

TEST_CASE("lists of targets: a target is in one list of its kind at most, and leaves the one that it is in") {
  MonitoredTarget first;
  MonitoredTarget second;
  MonitoredTarget stranger;
  List list;
  List other;
  list.push_back(first);
  list.push_back(second);
  CHECK(breaks([&] { list.push_back(second); }));
  CHECK(breaks([&] { list.push_back(first); }));
  CHECK(breaks([&] { other.remove(first); }));
  CHECK(breaks([&] { list.remove(stranger); }));
  list.remove(first);
  CHECK(list.front() == &second);
  CHECK(breaks([&] { list.remove(first); }));
}

}  // namespace
}  // namespace resourced::nodes
