// Parses a command line that is described as data. Only parser.cpp includes CLI11: its templates are slow to
// compile, and would otherwise be compiled for each command.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "cli/usage/command.hpp"

namespace resourced::cli::usage {

/// Thrown if the command line requests the help or the version; the text, with the end of its last line.
class Answer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown if the command line is wrong: the text names the word or option.
class ParseError : public std::runtime_error {
 public:
  ParseError(const std::string& text, int status) : std::runtime_error(text), status_(status) {}

  /// Returns the exit status for programs that distinguish kinds of errors.
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

/// Sets the values of the options and calls the callbacks of the commands in the words, whose exceptions pass
/// through. Throws Answer or ParseError before any callback. A word in brackets, `[a,b]`, is one value.
void parse(Command& program, int argc, const char* const* argv);

/// Calls parse() and prints what it throws: an answer on standard output, an error on standard error. Returns
/// the exit status of a program that has to end: 0, or that of the error.
[[nodiscard]] std::optional<int> parse_or_print(Command& program, int argc, const char* const* argv);

}  // namespace resourced::cli::usage
