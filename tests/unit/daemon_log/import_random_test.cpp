// The imported log of a daemon gives the state of that daemon: random commands, and restarts that
// renumber the hosts.
#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "imported_present.hpp"
#include "random_instance.hpp"
#include "thorough.hpp"

namespace resourced::daemon::log {

using module::RecordedDrain;
using module::State;
using module::TargetName;

namespace {

TEST_CASE("an import of a daemon's log has the state of that daemon, however its ranks were numbered") {
  const auto text_of_state = [](const State& known) {
    const module::AbsentStates state = known.by_name();
    std::set<std::string> lines;
    for (const RecordedDrain& drain : state.drains) {
      lines.insert(fmt::format("drain {} {} {}", text_of(drain.target), to_number(drain.timestamp),
                               drain.reason.value_or("-")));
    }
    // This configuration has no properties, so records of removed ones have no effect, nor do those of
    // targets that left.
    for (const module::RecordedProperty& property : state.properties) {
      const bool is_gone = std::ranges::find(state.shrunk, property.target) != state.shrunk.end();
      if (property.present && !is_gone)
        lines.insert(fmt::format("property {} {}", property.name, text_of(property.target)));
    }
    for (const TargetName& target : state.shrunk) lines.insert("shrunk " + text_of(target));
    if (known.expiration) lines.insert(fmt::format("expiration {}", to_number(known.expiration->value)));
    return lines;
  };
  for (unsigned seed = 1; seed <= resourced::test::thorough(100U, 25U); ++seed) {
    RandomInstance instance(seed);
    instance.run(30);
    CAPTURE(seed);
    CAPTURE(instance.log());
    CHECK(text_of_state(Present(instance.log()).state) == text_of_state(instance.state()));
  }
}

}  // namespace
}  // namespace resourced::daemon::log
