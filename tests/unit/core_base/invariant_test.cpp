#include "core/invariant.hpp"

#include <csignal>
#include <string>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct End {
  int signal = 0;
  std::string said;
};

/// Runs `work` in a child process; returns its end and its standard error.
template <class Work>
End end_of(const Work& work) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // doctest would report the signal as a failure of this test.
    std::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], STDERR_FILENO);
    work();
    ::_exit(0);
  }
  ::close(ends[1]);
  End end;
  char buffer[256];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    end.said.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace

TEST_CASE("a broken invariant ends the program and names itself, in every build") {
  const int two = 2;
  const End end = end_of([&] { RESOURCED_INVARIANT(two + two == 5); });
  CHECK(end.signal == SIGABRT);
  CHECK(end.said.find("invariant_test.cpp:") != std::string::npos);
  CHECK(end.said.ends_with(": broken invariant: two + two == 5\n"));
}

TEST_CASE("an invariant that holds is evaluated once and says nothing") {
  int looks = 0;
  const End end = end_of([&] {
    RESOURCED_INVARIANT(++looks == 1);
    RESOURCED_INVARIANT(looks == 1);
  });
  CHECK(end.signal == 0);
  CHECK(end.said.empty());
}
