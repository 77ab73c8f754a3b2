// A command line as CLI11 holds it, as JSON: docs/man/generate makes the lists of options in the manual pages
// of it.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
}  // namespace CLI

namespace resourced::cli::usage {

/// The hidden first argument that makes a program print its description and end.
inline constexpr std::string_view describe_word = "__describe";

/// `{"name", "help", "options": [OPTION], "arguments": [OPTION], "commands": [...]}`. An OPTION is
/// `{"names": ["-o", "--format"], "value": "TEXT", "choices": [...], "help": "...", "required": BOOL,
/// "several": BOOL, "excludes": [NAME], "needs": [NAME]}`: no value for a flag, no names for an argument.
/// Hidden options and commands are left out.
[[nodiscard]] nlohmann::ordered_json describe(const CLI::App& app);

}  // namespace resourced::cli::usage
