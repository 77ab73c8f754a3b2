// Completion of command lines of resourcectl: `resourcectl __complete -- WORD...` prints one candidate a line
// for the last word. Hosts, properties, partitions and reasons are those of the daemon that the words name
// (--uri, --key). It answers within completion_patience or not at all, because the user's shell waits for it.
#pragma once

#include <chrono>
#include <iosfwd>
#include <span>
#include <string>

namespace resourced::cli::usage {
struct Command;
}  // namespace resourced::cli::usage

namespace resourced::cli {

inline constexpr std::chrono::milliseconds completion_patience{100};

/// Prints candidates, and nothing on standard error. Returns the exit status: 0, or usage::complete_files if
/// the shell should offer names of files. If the daemon takes longer than completion_patience, the process
/// ends with status 0.
int complete(const usage::Command& app, std::span<const std::string> words, std::ostream& out);

}  // namespace resourced::cli
