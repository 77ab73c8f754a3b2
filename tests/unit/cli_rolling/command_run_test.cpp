// Commands of rolling work: the record of their end, and how an earlier command is found.
#include "cli/rolling/command_run.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "os/file.hpp"
#include "temp_dir.hpp"

namespace resourced::cli::rolling {
namespace {

struct Started {
  explicit Started(const test::TempDir& dir, std::vector<std::string> command)
      : run(loop, command_files(dir.file("state"), "n0"), std::move(command), "n0",
            [this](const std::optional<std::string>& outcome) {
              failure = outcome;
              has_ended = true;
            }) {}

  void until_ended() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!has_ended) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      loop.run_one_for(std::chrono::milliseconds(100));
    }
  }

  boost::asio::io_context loop;
  bool has_ended = false;
  std::optional<std::string> failure;
  CommandRun run;
};

TEST_CASE("a failure is text, whatever the command prints last") {
  const test::TempDir dir;
  Started it(dir, {"sh", "-c", R"(printf 'fan \377\033[1m\n'; exit 3)"});
  it.until_ended();
  REQUIRE(it.failure);
  CHECK(*it.failure == "the command ended with status 3: fan \xef\xbf\xbd\\u001b[1m");
  CHECK(!json_text::find_invalid_utf8(*it.failure));
}

TEST_CASE("a failure whose output cannot be read is told without it") {
  const test::TempDir dir;
  const std::string log = command_files(dir.file("state"), "n0").output;
  Started it(dir, {"sh", "-c", R"(rm "$0"; mkdir "$0"; exit 3)", log});
  it.until_ended();
  CHECK(it.failure == "the command ended with status 3");
}

TEST_CASE("a record that cannot be read is not one of a command that never started") {
  const test::TempDir dir;
  const CommandFiles files = command_files(dir.file("state"), "n0");
  CHECK(!has_command(files));
  REQUIRE(::symlink(files.status.c_str(), files.status.c_str()) == 0);
  CHECK_THROWS_WITH_AS((void)has_command(files),
                       (files.status + ": Too many levels of symbolic links").c_str(), Error);
}

TEST_CASE("an earlier command that has not said its process yet is waited for, and holds nobody") {
  const test::TempDir dir;
  std::optional<os::Descriptor> earlier(
      ::open(command_files(dir.file("state"), "n0").status.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::flock(earlier->get(), LOCK_EX) == 0);
  Started it(dir, {"true"});
  it.loop.run_one();
  CHECK(!it.has_ended);
  // The earlier command was killed before it recorded its process.
  earlier.reset();
  it.until_ended();
  CHECK(!it.failure);
}

TEST_CASE("an earlier command that has ended is not run again") {
  const test::TempDir dir;
  Started(dir, {"sh", "-c", "exit 4"}).until_ended();
  Started again(dir, {"true"});
  again.until_ended();
  CHECK(again.failure == "the command ended with status 4");
}

}  // namespace
}  // namespace resourced::cli::rolling
