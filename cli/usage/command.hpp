// A command line as data: a program describes its commands and options, and gives the description to parse()
// (parser.hpp), find_place() (complete.hpp) and describe() (describe.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace resourced::cli::usage {

/// The variable that gets the value of an option, or a function that takes it.
class Value {
 public:
  using Take = std::function<void(const std::string&)>;
  using Target = std::variant<std::monostate, bool*, int*, unsigned*, long*, unsigned long*, double*,
                              std::string*, std::optional<std::string>*, std::vector<std::string>*, Take>;

  /// A value that is stored nowhere, such as that of --help.
  Value() = default;
  Value(bool& to) : target_(&to) {}
  Value(int& to) : target_(&to) {}
  Value(unsigned& to) : target_(&to) {}
  Value(long& to) : target_(&to) {}
  Value(unsigned long& to) : target_(&to) {}
  Value(double& to) : target_(&to) {}
  Value(std::string& to) : target_(&to) {}
  Value(std::optional<std::string>& to) : target_(&to) {}
  Value(std::vector<std::string>& to) : target_(&to) {}
  Value(Take take) : target_(std::move(take)) {}

  [[nodiscard]] const Target& target() const noexcept { return target_; }
  [[nodiscard]] bool is_list() const noexcept;
  /// Returns the type in the help: INT, UINT, FLOAT or TEXT.
  [[nodiscard]] const char* type() const noexcept;

 private:
  Target target_;
};

/// Checks a text. Returns its error, or an empty string if the text is right.
using Check = std::function<std::string(const std::string&)>;

/// An option, a flag (an option without a value), or an argument (an option without dashes). Functions that
/// set its properties return it.
struct Option {
  enum class Kind { valued, flag, help, version };
  enum class Bound { none, positive, not_negative };

  /// Makes an option; `list` has its names, separated by commas.
  Option(Kind what, std::string_view list, Value to, std::string text);

  Option* required();
  /// Makes this option and the other exclude each other.
  Option* excludes(Option* other);
  Option* needs(Option* other);
  /// Sets the type in the help, instead of that of the variable.
  Option* type_name(std::string text);
  Option* one_of(std::vector<std::string> texts);
  Option* positive();
  Option* not_negative();
  /// Adds a check; the help appends `text` to the type.
  Option* check(Check function, std::string text);
  /// Sets the environment variable that has the value if the option is not given.
  Option* envname(std::string text);
  /// Sets the number of values at a time.
  Option* expected(std::size_t number);
  /// Keeps the values of all occurrences of the option.
  Option* take_all();
  /// Makes an option with several values take the next word only.
  Option* one_at_a_time();
  /// Makes the help show the present value of the variable.
  Option* capture_default_str();
  /// Hides the option from the help and from completion.
  Option* hide();
  /// Permits an empty value. By default it is refused: it comes from an unset variable of a script, and would
  /// mean that the option is not given.
  Option* may_be_empty();

  [[nodiscard]] bool is_argument() const { return !names.front().starts_with('-'); }
  [[nodiscard]] bool takes_value() const noexcept { return kind == Kind::valued; }
  /// Returns the maximum number of values.
  [[nodiscard]] std::size_t most() const noexcept;
  [[nodiscard]] bool has_name(std::string_view name) const;
  /// Returns how often the option was given; for an option with several values, their number.
  [[nodiscard]] std::size_t count() const noexcept { return given; }

  Kind kind;
  /// The names: `-o` and `--format`, or `FILE`.
  std::vector<std::string> names;
  Value value;
  std::string help;
  std::string type;
  std::vector<std::string> choices;
  Bound bound = Bound::none;
  Check checker;
  std::string checker_text;
  std::string environment;
  std::optional<std::size_t> values;
  /// The text that a version flag prints.
  std::string version;
  bool is_required = false;
  bool takes_all = false;
  bool takes_one_at_a_time = false;
  bool shows_default = false;
  bool is_hidden = false;
  bool takes_empty = false;
  std::vector<Option*> excluded;
  std::vector<Option*> needed;
  std::size_t given = 0;
};

/// The result of Option::most() for an option that fills a list.
inline constexpr std::size_t any_number = static_cast<std::size_t>(-1);

/// A program or a subcommand. It has the flag -h,--help.
struct Command {
  /// Makes a program or subcommand. A program without a name has that of its first word.
  explicit Command(std::string text, std::string word = {});
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(std::string word, std::string text);
  /// Adds an option, whose variable must outlive the parsing.
  Option* add_option(std::string_view list, Value to, std::string text = {});
  Option* add_option_function(std::string_view list, Value::Take take, std::string text);
  /// Adds a flag for a bool, or for an int that counts.
  Option* add_flag(std::string_view list, Value to, std::string text);
  Option* set_version_flag(std::string_view list, std::string version);
  void require_subcommand(std::size_t least, std::size_t most);
  void require_subcommand(std::size_t number) { require_subcommand(number, number); }
  /// Requires exactly one of these options. The help shows them under this heading.
  void require_one(std::string heading, std::vector<Option*> of);
  /// Sets a function that is called when all options have their values, if the command line has this command,
  /// after the callback of its subcommand.
  void callback(std::function<void()> function) { called = std::move(function); }

  /// Returns the names from below the program to this command, `property list`; empty for the program.
  [[nodiscard]] std::string path() const;
  /// Whether the parsed command line has none of its subcommands.
  [[nodiscard]] bool is_alone() const;
  /// Returns the option of this name; null if there is none.
  [[nodiscard]] Option* find_option(std::string_view option) const;
  /// Returns the option of this name. Throws std::out_of_range if there is none.
  [[nodiscard]] Option* get_option(std::string_view option) const;
  [[nodiscard]] std::size_t count(std::string_view option) const { return get_option(option)->count(); }

  std::string name;
  std::string help;
  std::string footer;
  Command* parent = nullptr;
  std::vector<std::unique_ptr<Option>> options;
  std::vector<std::unique_ptr<Command>> commands;
  std::size_t least_commands = 0;
  /// Maximum number of subcommands; 0 for any number.
  std::size_t most_commands = 0;
  /// Whether the options of a command may also follow its subcommands; holds for all below it.
  bool falls_through = false;
  std::string choice_heading;
  std::vector<Option*> choice;
  std::function<void()> called;
  /// Whether the parsed command line has this command.
  bool parsed = false;
};

}  // namespace resourced::cli::usage
