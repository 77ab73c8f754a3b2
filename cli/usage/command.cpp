// The parts of a command line, see command.hpp.
#include "cli/usage/command.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace resourced::cli::usage {

bool Value::is_list() const noexcept { return std::holds_alternative<std::vector<std::string>*>(target_); }

const char* Value::type() const noexcept {
  // Names of the types, in the order of Target.
  static constexpr auto types = std::to_array<const char*>(
      {"", "", "INT", "UINT", "INT", "UINT", "FLOAT", "TEXT", "TEXT", "TEXT", "TEXT"});
  static_assert(types.size() == std::variant_size_v<Target>);
  return types[target_.index()];
}

Option::Option(Kind what, std::string_view list, Value to, std::string text)
    : kind(what), value(std::move(to)), help(std::move(text)), type(value.type()) {
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(','));
    names.emplace_back(name);
    list.remove_prefix(std::min(name.size() + 1, list.size()));
  }
}

Option* Option::required() {
  is_required = true;
  return this;
}

Option* Option::excludes(Option* other) {
  excluded.push_back(other);
  other->excluded.push_back(this);
  return this;
}

Option* Option::needs(Option* other) {
  needed.push_back(other);
  return this;
}

Option* Option::type_name(std::string text) {
  type = std::move(text);
  return this;
}

Option* Option::one_of(std::vector<std::string> texts) {
  choices = std::move(texts);
  return this;
}

Option* Option::positive() {
  bound = Bound::positive;
  return this;
}

Option* Option::not_negative() {
  bound = Bound::not_negative;
  return this;
}

Option* Option::check(Check function, std::string text) {
  checker = std::move(function);
  checker_text = std::move(text);
  return this;
}

Option* Option::envname(std::string text) {
  environment = std::move(text);
  return this;
}

Option* Option::expected(std::size_t number) {
  values = number;
  return this;
}

Option* Option::take_all() {
  takes_all = true;
  return this;
}

Option* Option::one_at_a_time() {
  takes_one_at_a_time = true;
  return this;
}

Option* Option::capture_default_str() {
  shows_default = true;
  return this;
}

Option* Option::hide() {
  is_hidden = true;
  return this;
}

Option* Option::may_be_empty() {
  takes_empty = true;
  return this;
}

std::size_t Option::most() const noexcept {
  if (!takes_value()) return 0;
  return values.value_or(value.is_list() ? any_number : 1);
}

bool Option::has_name(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Command::Command(std::string text, std::string word) : name(std::move(word)), help(std::move(text)) {
  options.push_back(
      std::make_unique<Option>(Option::Kind::help, "-h,--help", Value(), "Print this help message and exit"));
}

Command* Command::add_subcommand(std::string word, std::string text) {
  commands.push_back(std::make_unique<Command>(std::move(text), std::move(word)));
  commands.back()->parent = this;
  return commands.back().get();
}

Option* Command::add_option(std::string_view list, Value to, std::string text) {
  options.push_back(std::make_unique<Option>(Option::Kind::valued, list, std::move(to), std::move(text)));
  return options.back().get();
}

Option* Command::add_option_function(std::string_view list, Value::Take take, std::string text) {
  return add_option(list, std::move(take), std::move(text));
}

Option* Command::add_flag(std::string_view list, Value to, std::string text) {
  options.push_back(std::make_unique<Option>(Option::Kind::flag, list, std::move(to), std::move(text)));
  return options.back().get();
}

Option* Command::set_version_flag(std::string_view list, std::string version) {
  options.push_back(std::make_unique<Option>(Option::Kind::version, list, Value(),
                                             "Display program version information and exit"));
  options.back()->version = std::move(version);
  return options.back().get();
}

void Command::require_subcommand(std::size_t least, std::size_t most) {
  least_commands = least;
  most_commands = most;
}

void Command::require_one(std::string heading, std::vector<Option*> of) {
  choice_heading = std::move(heading);
  choice = std::move(of);
}

std::string Command::path() const {
  if (parent == nullptr) return {};
  const std::string above = parent->path();
  return above.empty() ? name : above + ' ' + name;
}

bool Command::is_alone() const {
  return std::none_of(commands.begin(), commands.end(), [](const auto& command) { return command->parsed; });
}

Option* Command::find_option(std::string_view option) const {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [option](const auto& one) { return one->has_name(option); });
  return found == options.end() ? nullptr : found->get();
}

Option* Command::get_option(std::string_view option) const {
  if (Option* found = find_option(option)) return found;
  throw std::out_of_range("no option " + std::string(option));
}

}  // namespace resourced::cli::usage
