// The state of rolling work on disk.
#include "cli/rolling/state_file.hpp"

#include <string>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "temp_dir.hpp"

namespace resourced::cli::rolling {
namespace {

TEST_CASE("a state is of one daemon, its targets and a command") {
  const test::TempDir dir;
  const std::string path = dir.file("state");
  const Work work{"ipc:///run/a", "n[0-1]", {"true"}};
  {
    StateFile state(path, work);
    state.record({"n0", Step::done});
  }
  CHECK(StateFile(path, work).nodes().at("n0").step == Step::done);
  for (const Work& other : {Work{"ipc:///run/b", "n[0-1]", {"true"}}, Work{"ipc:///run/a", "n0", {"true"}},
                            Work{"ipc:///run/a", "n[0-1]", {"false"}}}) {
    CHECK_THROWS_AS(StateFile(path, other), Error);
    CHECK(default_state_path(other) != default_state_path(work));
  }
  CHECK(default_state_path(work) == default_state_path(Work(work)));
}

}  // namespace
}  // namespace resourced::cli::rolling
