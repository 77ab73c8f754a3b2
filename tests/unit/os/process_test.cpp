// Programs that a program starts; the shell is the started program.
#include "os/process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "core/error.hpp"
#include "temp_dir.hpp"

using resourced::Error;
using resourced::os::Descriptor;
using resourced::os::make_pipe;
using resourced::os::Pipe;
using resourced::os::Process;
using resourced::os::Program;

namespace {

std::string read_all(const Descriptor& from) {
  std::string text;
  std::array<char, 256> part{};
  for (ssize_t size = 0; (size = ::read(from.get(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(size));
  return text;
}

std::string output_of(Program program) {
  std::optional<Pipe> pipe(make_pipe());
  program.descriptors.at(1) = pipe->write.get();
  const pid_t id = resourced::os::start(program);
  Descriptor read = std::move(pipe->read);
  pipe.reset();
  std::string text = read_all(read);
  REQUIRE(::waitpid(id, nullptr, 0) == id);
  return text;
}

TEST_CASE("a program has the descriptors that it is given, and no others") {
  const Descriptor open(::open("/dev/zero", O_RDONLY));
  const Pipe other = make_pipe();
  CHECK(output_of({.arguments = {"sh", "-c", "ls /proc/$$/fd; readlink /proc/$$/fd/0 /proc/$$/fd/4"},
                   .descriptors = {-1, -1, STDERR_FILENO, other.read.get(), open.get()}}) ==
        "0\n1\n2\n3\n4\n/dev/null\n/dev/zero\n");
}

TEST_CASE("variables replace those of the environment") {
  ::setenv("RESOURCED_TEST_ONE", "old", 1);
  ::setenv("RESOURCED_TEST_TWO", "kept", 1);
  CHECK(output_of({.arguments = {"sh", "-c", "echo $RESOURCED_TEST_ONE $RESOURCED_TEST_TWO"},
                   .variables = {"RESOURCED_TEST_ONE=new"}}) == "new kept\n");
}

TEST_CASE("a program leads a session, and has no signal blocked or ignored") {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t taken;
  sigset_t before;
  sigemptyset(&taken);
  sigaddset(&taken, SIGTERM);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &taken, &before) == 0);
  // A shell blocks signals while it starts a program, so grep takes its place.
  CHECK(output_of({.arguments = {"sh", "-c",
                                 "test $(cut -d ' ' -f 6 /proc/$$/stat) = $$ && "
                                 "exec grep -E 'Sig(Blk|Ign)' /proc/self/status"}}) ==
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  REQUIRE(::pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
  std::signal(SIGPIPE, SIG_DFL);
}

TEST_CASE("a program that cannot be run is an error that names it") {
  try {
    (void)resourced::os::start({.arguments = {"/none/such"}});
    FAIL("it was started");
  } catch (const Error& error) {
    CHECK(error.errnum() == ENOENT);
    CHECK(std::string(error.what()) == "/none/such: No such file or directory");
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("the end of a process is told with its status") {
  boost::asio::io_context loop;
  std::optional<int> end;
  std::optional<Process> process(
      std::in_place, loop, resourced::os::start({.arguments = {"sh", "-c", "exit 3"}}), [&](int status) {
        end = status;
        process.reset();
      });
  loop.run();
  REQUIRE(end);
  CHECK(WEXITSTATUS(*end) == 3);
}

TEST_CASE("a process is killed with its session") {
  boost::asio::io_context loop;
  std::optional<Pipe> pipe(make_pipe());
  std::optional<int> end;
  const Process process(loop,
                        resourced::os::start({.arguments = {"sh", "-c", "sleep 600 & wait"},
                                              .descriptors = {-1, pipe->write.get(), -1}}),
                        [&](int status) { end = status; });
  const Descriptor read = std::move(pipe->read);
  pipe.reset();
  process.kill();
  loop.run();
  REQUIRE(end);
  CHECK(WTERMSIG(*end) == SIGKILL);
  CHECK(read_all(read).empty());
}

TEST_CASE("a record has the process and the end of the program") {
  const resourced::test::TempDir dir;
  const auto record = [&](std::vector<std::string> arguments) {
    const std::string path = dir.file("record");
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    REQUIRE(file.get() >= 0);
    boost::asio::io_context loop;
    const pid_t id = resourced::os::start(
        {.arguments = std::move(arguments), .descriptors = {-1, -1, -1}, .record = file.get()});
    const Process process(loop, id, [](int /*status*/) {});
    loop.run();
    const std::string text = resourced::os::read_file(path, 256);
    const std::string first = "pid " + std::to_string(id) + "\n";
    CHECK(text.starts_with(first));
    return text.substr(first.size());
  };
  CHECK(record({"sh", "-c", "exit 4"}) == "exit 4\n");
  CHECK(record({"sh", "-c", "kill -TERM $$"}) == "signal 15\n");
  CHECK(record({"/none/such"}) == "exit 127\n");
  CHECK(record({"sh", "-c", "! test -e /proc/$$/fd/3"}) == "exit 0\n");
}

}  // namespace
