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

TEST_CASE("arguments of a command may have bytes that are not text") {
  const test::TempDir dir;
  const Work work{"ipc:///run/a", "n0", {"ls", "f\xe9"}};
  const std::string path = default_state_path(work);
  CHECK(path != default_state_path({work.uri, work.targets, {"ls", "f\xe8"}}));
  StateFile(dir.file("state"), work).record({"n0", Step::done});
  CHECK(StateFile(dir.file("state"), work).nodes().at("n0").step == Step::done);
}

TEST_CASE("other spellings of a URI or of targets are the same work") {
  const test::TempDir dir;
  const std::string root = dir.file("");
  const Work work{"ipc://" + dir.file("a"), "n[0-1,3]", {"true"}};
  const std::string path = default_state_path(work);
  CHECK(default_state_path({"ipc://" + root + "/./b/..//a", "n[0-1,3]", {"true"}}) == path);
  for (const char* const targets : {"n3,n1,n0", "n[0-1],n3", "n[0,1],n[3,3]"})
    CHECK(default_state_path({work.uri, targets, {"true"}}) == path);
  CHECK(default_state_path({work.uri, "n[0-1,4]", {"true"}}) != path);
  // The daemons of a cluster.
  CHECK(default_state_path({"tcp://b:1,ipc://" + root + "/./a", "n0", {}}) ==
        default_state_path({"ipc://" + root + "/a,tcp://b:1,tcp://b:1", "n0", {}}));
  CHECK(default_state_path({"tcp://b:1,tcp://a:1", "n0", {}}) != default_state_path({"tcp://b:1", "n0", {}}));
  CHECK(default_state_path({"tcp://h:1", "0,1", {}}) == default_state_path({"tcp://h:1", "0-1", {}}));
  CHECK(default_state_path({"tcp://h:1", "property:a,all", {}}) ==
        default_state_path({"tcp://h:1", "all,property:a", {}}));
  CHECK(default_state_path({"tcp://h:1", "property:a", {}}) !=
        default_state_path({"tcp://h:1", "property:b", {}}));
}

}  // namespace
}  // namespace resourced::cli::rolling
