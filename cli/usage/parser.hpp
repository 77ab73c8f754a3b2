// The parser of a command line that is described as data. parser.cpp alone includes CLI11: its templates are
// slow to compile, and would be in each command.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "cli/usage/command.hpp"

namespace resourced::cli::usage {

/// The command line asks for the help or the version, which is the text, with the end of its last line.
class Answer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line is wrong: the text names the word or option.
class ParseError : public std::runtime_error {
 public:
  ParseError(const std::string& text, int status) : std::runtime_error(text), status_(status) {}

  /// The exit status of a program that tells kinds of errors apart.
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

/// Sets the values of the options and calls the callbacks of the commands that the words name; what they
/// throw passes through. Throws Answer or ParseError before any callback. A word in brackets, `[a,b]`, is one
/// value.
void parse(Command& program, int argc, const char* const* argv);

/// parse() for a program that prints what it throws: an answer on standard output, an error on standard
/// error. Returns the exit status of a program that has to end: 0, or that of the error.
[[nodiscard]] std::optional<int> parse_or_print(Command& program, int argc, const char* const* argv);

}  // namespace resourced::cli::usage
