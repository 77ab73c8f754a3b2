// The description of a command line, see describe.hpp.
#include "cli/usage/describe.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/usage/command.hpp"

namespace resourced::cli::usage {

namespace {

using Json = nlohmann::ordered_json;

Json names_in(const std::vector<Option*>& options) {
  std::set<std::string> names;
  for (const Option* option : options) names.insert(option->names.back());
  return names;
}

Json describe_option(const Option& option) {
  Json described = Json::object();
  if (option.is_argument()) {
    described["name"] = option.names.back();
  } else {
    described["names"] = option.names;
  }
  if (option.takes_value()) described["value"] = option.type;
  if (!option.choices.empty()) described["choices"] = option.choices;
  described["help"] = option.help;
  described["required"] = option.is_required;
  described["several"] = option.most() == any_number;
  if (!option.environment.empty()) described["environment"] = option.environment;
  described["excludes"] = names_in(option.excluded);
  described["needs"] = names_in(option.needed);
  return described;
}

}  // namespace

Json describe(const Command& program) {
  Json options = Json::array();
  Json arguments = Json::array();
  for (const auto& option : program.options) {
    if (!option->is_hidden) (option->is_argument() ? arguments : options).push_back(describe_option(*option));
  }
  Json commands = Json::array();
  for (const auto& command : program.commands) commands.push_back(describe(*command));
  return {{"name", program.name},
          {"help", program.help},
          {"options", std::move(options)},
          {"arguments", std::move(arguments)},
          {"commands", std::move(commands)}};
}

}  // namespace resourced::cli::usage
