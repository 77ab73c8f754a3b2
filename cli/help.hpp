// The part of the help of each subcommand that does not follow from its options: fields of -o, examples and
// exit statuses. --help shows it as a footer, and the manual pages are made of it. tests/system/man/examples
// runs each example against a daemon.
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
  /// A line for a shell.
  std::string_view line;
  std::string_view note;
};

/// The fields of -o of a subcommand (`drain`, `R show`); none for one without that option.
[[nodiscard]] std::vector<std::string> fields_of(std::string_view command);

/// In an order in which they succeed one after the other.
[[nodiscard]] std::span<const Example> examples_of(std::string_view command);

/// The meaning of exit status 1.
[[nodiscard]] std::string_view failure_of(std::string_view command);

/// Adds the footers to all subcommands.
void add_help(usage::Command& app);

/// usage::describe() of the program, with `fields`, `examples` (`[{"line", "note"}]`) and `failure` of each
/// subcommand.
[[nodiscard]] nlohmann::ordered_json describe_program(const usage::Command& app);

}  // namespace resourced::cli
