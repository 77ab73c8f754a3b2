// The parts of the help of each subcommand beside its options: fields of -o, examples and exit statuses.
// --help shows them as a footer, and the manual pages are made of them. tests/system/man/examples runs each
// example against a daemon.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace resourced::cli::usage {
struct Command;
}  // namespace resourced::cli::usage

namespace resourced::cli {

struct Example {
  /// The example: a line for a shell.
  std::string_view line;
  std::string_view note;
};

/// Returns the fields of -o of a subcommand (`drain`, `R show`); none for one without that option.
[[nodiscard]] std::vector<std::string> fields_of(std::string_view command);

/// Returns the examples of a subcommand, in an order in which each succeeds after the ones before.
[[nodiscard]] std::span<const Example> examples_of(std::string_view command);

/// Returns the meaning of exit status 1.
[[nodiscard]] std::string_view failure_of(std::string_view command);

/// Adds the footers to all subcommands.
void add_help(usage::Command& app);

/// Returns usage::describe() of the program, with `fields`, `examples` (`[{"line", "note"}]`) and `failure`
/// of each subcommand.
[[nodiscard]] nlohmann::ordered_json describe_program(const usage::Command& app);

}  // namespace resourced::cli
