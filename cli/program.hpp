// resourcectl as a function: parses a command line, runs the subcommand, and turns failures into exit
// statuses.
#pragma once

#include <iosfwd>

#include "cli/commands/context.hpp"

namespace resourced::cli {

enum class ExitStatus : int {
  done = 0,
  failed = 1,
  usage = 2,
  /// As a shell reports a process that has died of SIGINT, which program() makes of it.
  interrupted = 130,
};

inline constexpr client::Milliseconds default_timeout{30000};

/// `terminal` says whether `out` is one, `timeout` is the longest wait for an answer of the daemon,
/// `interactive` says whether `in` and `out` are a terminal. A failure is one line on err, `resourcectl:
/// TEXT`.
[[nodiscard]] int run(int argc, const char* const* argv, std::istream& in, std::ostream& out,
                      std::ostream& err, bool terminal, const commands::Clock& now,
                      client::Milliseconds timeout = default_timeout, bool interactive = false);

/// resourcectl as a process: run() with its streams, its terminal and its signals.
[[nodiscard]] int program(int argc, const char* const* argv);

}  // namespace resourced::cli
