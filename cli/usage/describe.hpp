// Describes a command line as JSON, from which docs/man/generate makes the lists of options in the manual
// pages.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::cli::usage {

struct Command;

/// The hidden first argument that makes a program print its description and end.
inline constexpr std::string_view describe_word = "__describe";

/// Returns `{"name", "help", "options": [OPTION], "arguments": [OPTION], "commands": [...]}`. An OPTION is
/// `{"names": ["-o", "--format"], "value": "TEXT", "choices": [...], "help": "...", "required": BOOL,
/// "several": BOOL, "excludes": [NAME], "needs": [NAME]}`: no value for a flag, no names for an argument.
[[nodiscard]] nlohmann::ordered_json describe(const Command& program);

}  // namespace resourced::cli::usage
