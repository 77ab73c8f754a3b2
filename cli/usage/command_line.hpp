// Reads the parts of a command line out of CLI11's description of it. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace resourced::cli::usage {

/// The visible options and arguments of a command, those of its option groups included.
[[nodiscard]] std::vector<const CLI::Option*> options_of(const CLI::App& app);
/// The visible subcommands.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& app);

[[nodiscard]] bool takes_value(const CLI::Option& option);
/// `-o` and `--format`.
[[nodiscard]] std::vector<std::string> names_of(const CLI::Option& option);
/// The values of an option that has a fixed set of them.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace resourced::cli::usage
