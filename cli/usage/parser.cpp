// The parser, see parser.hpp: a parser of CLI11 that is made from the description.
#include "cli/usage/parser.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

namespace resourced::cli::usage {

namespace {

// For an option with several values CLI11 splits `[a,b]` into two, but brackets are part of idsets, hostlists
// and shapes here. So an argument in brackets gets a mark before the parsing, which is removed afterwards.

/// A control character, which no valid argument starts with.
constexpr char mark = '\x01';

/// Removes the marks from a value or message of CLI11.
std::string without_marks(std::string text) {
  std::erase(text, mark);
  return text;
}

/// Returns the arguments of a program in the order that CLI11 expects, last first and without the program
/// itself.
std::vector<std::string> protect_brackets(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string_view argument = argv[i];
    const bool in_brackets = argument.starts_with('[') && argument.ends_with(']');
    arguments.push_back(in_brackets ? mark + std::string(argument) : std::string(argument));
  }
  return arguments;
}

/// Returns a word that CLI11 takes for a request for help. It reads `-host:a` as -h and more, and would print
/// the help. Other letters before the h are flags, so `-nh` does request the help. The last argument comes
/// first.
std::optional<std::string> word_taken_for_help(const std::vector<std::string>& arguments) {
  std::optional<std::string> found;
  for (auto word = arguments.rbegin(); word != arguments.rend() && *word != "--"; ++word) {
    if (*word == "-h" || *word == "--help") return std::nullopt;
    if (!found && word->size() > 2 && word->starts_with("-h")) found = *word;
  }
  return found;
}

/// Refuses `--until=`, because CLI11 would take the next word as its value.
void refuse_empty_values(const std::vector<std::string>& arguments) {
  for (auto word = arguments.rbegin(); word != arguments.rend() && *word != "--"; ++word) {
    if (word->starts_with("--") && word->find('=') == word->size() - 1)
      throw ParseError(word->substr(0, word->size() - 1) + ": the value is empty",
                       static_cast<int>(CLI::ExitCodes::ValidationError));
  }
}

/// Returns the rest of a text of CLI11 after `behind`; nothing if the text does not have it.
std::optional<std::string> rest_behind(const std::string& text, std::string_view behind) {
  const auto at = text.find(behind);
  if (at == std::string::npos) return std::nullopt;
  return text.substr(at + behind.size());
}

/// Rewrites errors of CLI11 that name neither the reason nor the way out.
std::string own_words(const std::string& text) {
  const std::string name = text.substr(0, text.find(": "));
  if (const auto times = rest_behind(text, ": At Most 1 required but received "))
    return name + " is given " + *times + " times, and takes one value";
  if (text.find(" required ") != std::string::npos && text.ends_with(" missing"))
    return name + ": the value is missing";
  for (const char* begin :
       {"The following argument was not expected: ", "The following arguments were not expected: "}) {
    if (const auto words = rest_behind(text, begin)) return "unexpected: " + *words;
  }
  if (const auto pair = rest_behind(text, "Could not convert: ")) {
    const auto equals = pair->find(" = ");
    if (equals != std::string::npos)
      return pair->substr(0, equals) + ": cannot be " + pair->substr(equals + 3);
  }
  return text;
}

std::string names_of(const Option& option) {
  std::string names;
  for (const std::string& name : option.names) names += names.empty() ? name : ',' + name;
  return names;
}

CLI::Option* add_valued(CLI::App& app, const Option& option) {
  const auto add = [&](const auto& to) -> CLI::Option* {
    using Target = std::remove_cvref_t<decltype(to)>;
    if constexpr (std::is_same_v<Target, Value::Take>) {
      return app.add_option_function<std::string>(names_of(option), to, option.help);
    } else if constexpr (std::is_same_v<Target, std::monostate> || std::is_same_v<Target, bool*>) {
      throw std::invalid_argument(names_of(option) + " has no variable for a value");
    } else {
      return app.add_option(names_of(option), *to, option.help);
    }
  };
  return std::visit(add, option.value.target());
}

CLI::Option* add_flag(CLI::App& app, const Option& option) {
  if (int* const* counter = std::get_if<int*>(&option.value.target()))
    return app.add_flag(names_of(option), **counter, option.help);
  return app.add_flag(names_of(option), *std::get<bool*>(option.value.target()), option.help);
}

void describe_values(CLI::Option& built, const Option& option) {
  // A positional argument shows no TEXT behind its name, which says enough.
  built.type_name(option.is_argument() && option.type == "TEXT" ? "" : option.type);
  if (!option.choices.empty()) {
    std::string known;
    for (const std::string& choice : option.choices) known += (known.empty() ? "" : ", ") + choice;
    const auto check = [choices = option.choices, known](const std::string& text) {
      if (std::ranges::find(choices, text) != choices.end()) return std::string();
      return '"' + text + "\" is none of " + known;
    };
    built.check(CLI::Validator(check, '{' + known + '}'));
  }
  if (option.bound == Option::Bound::positive) built.check(CLI::PositiveNumber);
  if (option.bound == Option::Bound::not_negative) built.check(CLI::NonNegativeNumber);
  if (option.checker) built.check(option.checker, option.checker_text);
  if (!option.environment.empty()) built.envname(option.environment);
  if (option.values) built.expected(static_cast<int>(*option.values));
  if (option.takes_all) built.take_all();
  if (option.takes_one_at_a_time) built.allow_extra_args(false);
  if (option.shows_default) built.capture_default_str();
  // CLI11 runs this one before the checks above.
  built.transform(CLI::Validator(
      [refuses_empty = !option.is_argument() && !option.takes_empty](std::string& text) {
        text = without_marks(std::move(text));
        return refuses_empty && text.empty() ? std::string("the value is empty") : std::string();
      },
      ""));
}

/// A parser of CLI11 for a program.
class Parser {
 public:
  Parser(Command& program, const char* first_word)
      : app_(program.help, program.name.empty() ? first_word : program.name) {
    add(app_, program);
    for (const auto& [option, built] : options_) {
      for (Option* other : option->excluded) built->excludes(options_.at(other));
      for (Option* other : option->needed) built->needs(options_.at(other));
    }
  }

  void parse(std::vector<std::string> arguments) {
    refuse_empty_values(arguments);
    const auto taken = word_taken_for_help(arguments);
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp& /*wanted*/) {
      if (taken)
        throw ParseError(*taken + " is no option; write -- before a word that begins with -",
                         static_cast<int>(CLI::ExitCodes::ExtrasError));
      throw Answer(app_.help());
    } catch (const CLI::Success& wanted) {
      throw Answer(std::string(wanted.what()) + '\n');
    } catch (const CLI::RequiredError& error) {
      const std::string text = without_marks(error.what());
      const bool lacks_command = text.find("subcommand is required") != std::string::npos;
      throw ParseError(lacks_command ? missing_command() : text, error.get_exit_code());
    } catch (const CLI::ParseError& error) {
      throw ParseError(own_words(without_marks(error.what())), error.get_exit_code());
    }
    for (const auto& [option, built] : options_) option->given = built->count();
    for (const auto& [command, built] : commands_) command->parsed = built->parsed();
  }

 private:
  /// Returns an error that names the command behind which another one is missing, and its subcommands.
  [[nodiscard]] std::string missing_command() const {
    const Command* last = commands_.front().first;
    for (const auto& [command, built] : commands_) {
      if (built->parsed() && command->least_commands > 0) last = command;
    }
    std::string known;
    for (const auto& further : last->commands) known += (known.empty() ? "" : ", ") + further->name;
    const std::string name = last->name.empty() ? app_.get_name() : last->name;
    return "a command is missing behind " + name + ": one of " + known;
  }

  void add(CLI::App& app, Command& command) {
    commands_.emplace_back(&command, &app);
    app.footer(command.footer);
    // Subcommands inherit both settings.
    if (command.most_commands > 0) app.require_subcommand(command.least_commands, command.most_commands);
    if (command.falls_through) app.fallthrough();
    CLI::App* group = nullptr;
    if (!command.choice.empty()) {
      group = app.add_option_group(command.choice_heading);
      group->require_option(1);
    }
    for (const auto& option : command.options) {
      const bool is_choice =
          std::find(command.choice.begin(), command.choice.end(), option.get()) != command.choice.end();
      add(is_choice ? *group : app, *option);
    }
    for (const auto& further : command.commands)
      add(*app.add_subcommand(further->name, further->help), *further);
  }

  void add(CLI::App& app, Option& option) {
    CLI::Option* built = nullptr;
    switch (option.kind) {
      case Option::Kind::help:
        // CLI11 adds it by itself.
        return;
      case Option::Kind::version:
        app.set_version_flag(names_of(option), option.version, option.help);
        return;
      case Option::Kind::flag:
        built = add_flag(app, option);
        break;
      case Option::Kind::valued:
        built = add_valued(app, option);
        describe_values(*built, option);
        break;
    }
    if (option.is_required) built->required();
    if (option.is_hidden) built->group("");
    options_.emplace(&option, built);
  }

  CLI::App app_;
  std::map<Option*, CLI::Option*> options_;
  std::vector<std::pair<Command*, const CLI::App*>> commands_;
};

void call_back(const Command& command) {
  if (!command.parsed) return;
  for (const auto& further : command.commands) call_back(*further);
  if (command.called) command.called();
}

}  // namespace

void parse(Command& program, int argc, const char* const* argv) {
  Parser(program, argv[0]).parse(protect_brackets(argc, argv));
  call_back(program);
}

std::optional<int> parse_or_print(Command& program, int argc, const char* const* argv) {
  try {
    parse(program, argc, argv);
    return std::nullopt;
  } catch (const Answer& answer) {
    std::cout << answer.what() << std::flush;
    return 0;
  } catch (const ParseError& error) {
    std::cerr << error.what() << "\nRun with --help for more information.\n";
    return error.status();
  }
}

}  // namespace resourced::cli::usage
