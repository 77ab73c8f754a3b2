// The parts of a command line, see command_line.hpp.
#include "cli/usage/command_line.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace resourced::cli::usage {

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> found;
  for (const CLI::Option* option : app.get_options({})) {
    if (!option->get_group().empty()) found.push_back(option);
  }
  // CLI11 holds an option group as a subcommand without a name.
  for (const CLI::App* group : app.get_subcommands({})) {
    if (!group->get_name().empty()) continue;
    for (const CLI::Option* option : options_of(*group)) {
      if (option->get_name(false, true) != "-h,--help") found.push_back(option);
    }
  }
  return found;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* command) { return !command->get_name().empty() && !command->get_group().empty(); });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  // The validator describes itself as {a,b}, and CLI11 appends that to the name of the type.
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  if (open == std::string::npos || !type.ends_with('}')) return {};
  std::vector<std::string> choices;
  std::string_view rest = std::string_view(type).substr(open + 1, type.size() - open - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    choices.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return choices;
}

}  // namespace resourced::cli::usage
