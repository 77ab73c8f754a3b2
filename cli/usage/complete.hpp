// Completion of command lines for shells: the place of the last word in a command line, and the candidates
// that follow from the description of the command line alone. A program prints them when its first argument
// is complete_word:
//
//     PROGRAM __complete -- WORD...
//
// WORD... are the words behind the program's name up to the one to complete, which may be empty.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/usage/command.hpp"

namespace resourced::cli::usage {

inline constexpr std::string_view complete_word = "__complete";

/// The exit status that tells the shell to complete names of files. With 0 there are no further candidates.
inline constexpr int complete_files = 3;

/// Whether an invocation is `PROGRAM __complete [--] WORD...`.
[[nodiscard]] bool is_completion(int argc, const char* const* argv);
[[nodiscard]] std::vector<std::string> words_to_complete(int argc, const char* const* argv);

struct Place {
  /// The program and the subcommands in the words, outermost first.
  std::vector<const Command*> commands;
  /// The option or argument whose value the last word is; null for none.
  const Option* value_of = nullptr;
  /// The last word without the text before the value in it (`--uri=`), which is `before`.
  std::string word;
  std::string before;
  bool is_behind_dashes = false;
  /// The options in the earlier words, with their values.
  std::vector<std::pair<const Option*, std::string>> given;

  /// Returns the names of the subcommands, `R show`; empty for the program itself.
  [[nodiscard]] std::string command() const;
  /// Returns the value of an option by its long name without dashes; empty if it is not given.
  [[nodiscard]] std::string value(std::string_view option) const;
};

/// Finds the place of the last word. Requires a word.
[[nodiscard]] Place find_place(const Command& program, std::span<const std::string> words);

/// A word that is no option, or no subcommand where one is expected.
struct UnknownWord {
  /// The command that does not have it.
  const Command* command = nullptr;
  /// The word, without the value of an option.
  std::string word;
};
/// Finds the first unknown word of a command line; nothing if there is none.
[[nodiscard]] std::optional<UnknownWord> find_unknown(const Command& program,
                                                      std::span<const std::string> words);

/// Returns subcommands, options, and values of options that have a fixed set, as whole words.
[[nodiscard]] std::vector<std::string> fixed_candidates(const Place& place);

/// Whether the value is the name of a file, by its type (FILE, PATH or DIR).
[[nodiscard]] bool is_file(const Option& option);

/// Completes for a program whose values are fixed sets and files. Returns the exit status, 0 or
/// complete_files.
[[nodiscard]] int complete_fixed(const Command& program, std::span<const std::string> words,
                                 std::string& candidates);

}  // namespace resourced::cli::usage
