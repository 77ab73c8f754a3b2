// Keeping arguments in brackets whole, see brackets.hpp.
#include "cli/brackets.hpp"

#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

namespace resourced::cli {

namespace {

/// No argument that makes sense starts with it.
constexpr char mark = '\x01';

}  // namespace

std::vector<std::string> protect_brackets(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string_view argument = argv[i];
    const bool in_brackets = argument.starts_with('[') && argument.ends_with(']');
    arguments.push_back(in_brackets ? mark + std::string(argument) : std::string(argument));
  }
  return arguments;
}

void accept_protected_brackets(CLI::App& app) {
  const CLI::Validator take_off(
      [](std::string& text) {
        text = without_marks(std::move(text));
        return std::string();
      },
      "");
  for (auto* option : app.get_options()) option->transform(take_off);
  for (auto* command : app.get_subcommands({})) accept_protected_brackets(*command);
}

std::string without_marks(std::string text) {
  std::erase(text, mark);
  return text;
}

}  // namespace resourced::cli
