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
  /// The status with which a shell reports a process that died of SIGINT; program() dies of it.
  interrupted = 130,
};

inline constexpr client::Milliseconds default_timeout{30000};

/// Runs resourcectl. `terminal` says whether `out` is a terminal, `timeout` is the longest wait for an answer
/// of the daemon, `interactive` says whether `in` and `out` are a terminal. A failure is one line on err,
/// `resourcectl: TEXT`.
[[nodiscard]] int run(int argc, const char* const* argv, std::istream& in, std::ostream& out,
                      std::ostream& err, bool terminal, const commands::Clock& now,
                      client::Milliseconds timeout = default_timeout, bool interactive = false);

/// Runs resourcectl as a process: run() with its streams, its terminal and its signals.
[[nodiscard]] int program(int argc, const char* const* argv);

}  // namespace resourced::cli
