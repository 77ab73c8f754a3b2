// The state of rolling work in a file.
#include "cli/rolling/state_file.hpp"

#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/file.hpp"
#include "os/process.hpp"
#include "temp_dir.hpp"

namespace resourced::cli::rolling {
namespace {

constexpr WallTime noon = wall_time(43200.0);

TEST_CASE("a state is of one daemon, its targets and a command") {
  const test::TempDir dir;
  const std::string path = dir.file("state");
  const Work work{"ipc:///run/a", "n[0-1]", {"true"}};
  {
    StateFile state(path, work, noon);
    CHECK(state.nodes().empty());
    state.begin({{"n0"}, {"n1"}});
    state.record({"n0", Step::done});
  }
  {
    StateFile state(path, work, noon + Seconds(7));
    CHECK(state.nodes().at("n0").step == Step::done);
    CHECK(state.nodes().at("n1").step == Step::waiting);
    CHECK(state.begun() == noon);
    state.begin({{"n2"}});
  }
  CHECK(StateFile(path, work, noon).nodes().size() == 2);
  for (const Work& other : {Work{"ipc:///run/b", "n[0-1]", {"true"}}, Work{"ipc:///run/a", "n0", {"true"}},
                            Work{"ipc:///run/a", "n[0-1]", {"false"}}}) {
    CHECK_THROWS_AS(StateFile(path, other, noon), Error);
    CHECK(default_state_path(other) != default_state_path(work));
  }
  CHECK(default_state_path(work) == default_state_path(Work(work)));
}

TEST_CASE("one run at a time has a state; a command that outlives its run does not keep it") {
  const test::TempDir dir;
  const std::string path = dir.file("state");
  const Work work{"ipc:///run/a", "n0", {"true"}};
  std::optional<StateFile> run(std::in_place, path, work, noon);
  run->begin({{"n0"}});
  CHECK_THROWS_WITH_AS(StateFile(path, work, noon), (path + ": another run does this work").c_str(), Error);
  os::Pipe input = os::make_pipe();
  const os::Descriptor record = os::open_file(dir.file("record"), O_WRONLY | O_CREAT, 0600);
  const pid_t command =
      os::start({.arguments = {"cat"}, .descriptors = {input.read.get()}, .record = record.get()});
  run.reset();
  CHECK(StateFile(path, work, noon).nodes().size() == 1);
  ::close(input.write.release());
  CHECK(::waitpid(command, nullptr, 0) == command);
}

TEST_CASE("a run with reboot and one without it do not continue each other") {
  const test::TempDir dir;
  const std::string path = dir.file("state");
  Work work{"ipc:///run/a", "n0", {"true"}, true};
  StateFile(path, work, noon).begin({{"n0"}});
  const std::string place = default_state_path(work);
  work.reboot = false;
  CHECK(default_state_path(work) == place);
  CHECK_THROWS_WITH_AS(StateFile(path, work, noon),
                       (path + ": the state of a run with --reboot; run it so to go on, or name another file "
                               "with --state")
                           .c_str(),
                       Error);
}

TEST_CASE("a state whose list of nodes was cut off by a crash is of work that has not begun") {
  const test::TempDir dir;
  const std::string path = dir.file("state");
  const Work work{"ipc:///run/a", "n[0-1]", {"true"}};
  StateFile(path, work, noon).begin({{"n0"}, {"n1"}});
  std::string text;
  {
    std::ifstream file(path);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    std::ofstream(path) << text.substr(0, size);
    CHECK(StateFile(path, work, noon + Seconds(7)).nodes().empty());
  }
}

TEST_CASE("a file that is not the state of this work is refused and does not change") {
  const test::TempDir dir;
  for (const char* const text : {"precious", "{\"precious\": 1}\nand its last line"}) {
    const std::string path = dir.write("file", text);
    CHECK_THROWS_WITH_AS(
        StateFile(path, {"ipc:///run/a", "n0", {"true"}}, noon),
        (path + ": the state of another daemon, of other targets or of another command; name "
                "another file with --state")
            .c_str(),
        Error);
    CHECK(os::read_file(path, 100) == text);
  }
}

TEST_CASE("arguments of a command may have bytes that are not text") {
  const test::TempDir dir;
  const Work work{"ipc:///run/a", "n0", {"ls", "f\xe9"}};
  const std::string path = default_state_path(work);
  CHECK(path != default_state_path({work.uri, work.targets, {"ls", "f\xe8"}}));
  StateFile(dir.file("state"), work, noon).begin({{"n0", Step::done}});
  CHECK(StateFile(dir.file("state"), work, noon).nodes().at("n0").step == Step::done);
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
  // URIs of several cluster members: their order and repetitions do not matter.
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
