// Arguments in brackets: CLI11 takes `[a,b]` for a list of two where an option may have several values, but
// here brackets belong to idsets, hostlists and shapes.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace resourced::cli {

/// The arguments of a program in the order that CLI11 wants, last first and without the program itself, with
/// a mark before each that it would take apart.
[[nodiscard]] std::vector<std::string> protect_brackets(int argc, const char* const* argv);

/// Makes every option of the program and its subcommands take the mark off again.
void accept_protected_brackets(CLI::App& app);

/// A text of CLI11's without marks.
[[nodiscard]] std::string without_marks(std::string text);

}  // namespace resourced::cli
