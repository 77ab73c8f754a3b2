// The description of a command line, see describe.hpp.
#include "cli/usage/describe.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/usage/command_line.hpp"

namespace resourced::cli::usage {

namespace {

using Json = nlohmann::ordered_json;

Json names_in(const std::set<CLI::Option*>& options) {
  // In the order of names: the set is ordered by addresses, which differ from run to run.
  std::set<std::string> names;
  for (const CLI::Option* option : options) {
    names.insert(option->get_positional() ? option->get_name(true) : names_of(*option).back());
  }
  return names;
}

Json describe_option(const CLI::Option& option) {
  Json described = Json::object();
  if (option.get_positional()) {
    described["name"] = option.get_name(true);
  } else {
    described["names"] = names_of(option);
  }
  if (takes_value(option)) {
    // Without the description of a validator.
    const std::string type = option.get_type_name();
    described["value"] = type.substr(0, type.find(':'));
  }
  if (const auto choices = choices_of(option); !choices.empty()) described["choices"] = choices;
  described["help"] = option.get_description();
  described["required"] = option.get_required();
  described["several"] = option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
  if (!option.get_envname().empty()) described["environment"] = option.get_envname();
  described["excludes"] = names_in(option.get_excludes());
  described["needs"] = names_in(option.get_needs());
  return described;
}

}  // namespace

Json describe(const CLI::App& app) {
  Json options = Json::array();
  Json arguments = Json::array();
  for (const CLI::Option* option : options_of(app)) {
    (option->get_positional() ? arguments : options).push_back(describe_option(*option));
  }
  Json commands = Json::array();
  for (const CLI::App* command : commands_of(app)) commands.push_back(describe(*command));
  return {{"name", app.get_name()},
          {"help", app.get_description()},
          {"options", std::move(options)},
          {"arguments", std::move(arguments)},
          {"commands", std::move(commands)}};
}

}  // namespace resourced::cli::usage
