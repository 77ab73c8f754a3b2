// Formats of the option -o that have a name: those of this program, and those in a file of the user.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace resourced::cli::commands {

/// Returns the format of this name for a command such as `property list`; a text with a brace is a format
/// itself. The format `default`, the standard table, is empty. The user's file is read only for `help` and
/// for names that are not of this program. Throws usage::Answer with a list of the names for `help`, and with
/// the lines of a file of formats for `get-config=NAME`; UsageError for an unknown name, and Error for a file
/// that cannot be read, has an entry without a format, or one with a name of this program.
[[nodiscard]] std::string find_format(std::string_view command, const std::string& name);

/// Returns the format of the environment for a command, as find_format() does: the value of
/// RESOURCED_STATUS_FORMAT_DEFAULT for `status`. Empty if the variable is not set.
[[nodiscard]] std::string default_format(std::string_view command);

/// Returns the names that find_format() knows for a command; if the user's file is wrong only those of this
/// program.
[[nodiscard]] std::vector<std::string> format_names(std::string_view command);

}  // namespace resourced::cli::commands
