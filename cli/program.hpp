// resourcectl as a function: parses a command line, runs the subcommand, and turns failures into exit
// statuses.
#pragma once

#include <iosfwd>

#include "cli/commands/context.hpp"

namespace resourced::cli {

enum class ExitStatus : int { done = 0, failed = 1, usage = 2 };

/// `terminal` says whether `out` is one, `timeout` is the longest wait for an answer of the daemon. A failure
/// is one line on err, `resourcectl: TEXT`.
[[nodiscard]] int run(int argc, const char* const* argv, std::istream& in, std::ostream& out,
                      std::ostream& err, bool terminal, const commands::Clock& now,
                      client::Milliseconds timeout = client::Milliseconds(30000));

}  // namespace resourced::cli
