// The entry point of resourcectl; the program itself is in program.cpp.
#include <chrono>
#include <iostream>

#include <unistd.h>

#include "cli/program.hpp"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const auto now = [] { return resourced::WallTime(std::chrono::system_clock::now().time_since_epoch()); };
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const bool interactive = terminal && isatty(STDIN_FILENO) == 1;
  return resourced::cli::run(argc, argv, std::cin, std::cout, std::cerr, terminal, now,
                             resourced::cli::default_timeout, interactive);
}
