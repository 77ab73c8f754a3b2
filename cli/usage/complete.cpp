// Completion of command lines, see complete.hpp.
#include "cli/usage/complete.hpp"

#include <algorithm>
#include <cstddef>

namespace resourced::cli::usage {

namespace {

/// Returns the option of this name (`-o`, `--format`) of the innermost command that has one.
const Option* find_option(const std::vector<const Command*>& commands, std::string_view name) {
  for (auto command = commands.rbegin(); command != commands.rend(); ++command) {
    if (const Option* option = (*command)->find_option(name)) return option;
  }
  return nullptr;
}

/// Follows the words of a command line to the place of the last one.
class Walk {
 public:
  explicit Walk(const Command& program) { place_.commands.push_back(&program); }

  void take(const std::string& word) {
    if (open_ != nullptr) {
      place_.given.emplace_back(open_, word);
      open_ = nullptr;
    } else if (place_.is_behind_dashes || word.size() < 2 || word.front() != '-') {
      take_plain(word);
    } else if (word == "--") {
      place_.is_behind_dashes = true;
    } else if (word.starts_with("--")) {
      take_long(word);
    } else {
      take_short(word);
    }
  }

  [[nodiscard]] std::optional<UnknownWord> unknown() && { return std::move(unknown_); }

  Place end(const std::string& word) && {
    place_.word = word;
    if (open_ != nullptr) {
      place_.value_of = open_;
      return std::move(place_);
    }
    if (!place_.is_behind_dashes && word.starts_with('-')) {
      const std::size_t equals = word.find('=');
      if (!word.starts_with("--") || equals == std::string::npos) return std::move(place_);
      place_.value_of = find_option(place_.commands, word.substr(0, equals));
      place_.before = word.substr(0, equals + 1);
      place_.word = word.substr(equals + 1);
      return std::move(place_);
    }
    place_.value_of = next_argument();
    return std::move(place_);
  }

 private:
  void take_plain(const std::string& word) {
    if (!place_.is_behind_dashes && taken_ == 0) {
      for (const auto& command : place_.commands.back()->commands) {
        if (command->name != word) continue;
        place_.commands.push_back(command.get());
        return;
      }
      if (!place_.commands.back()->commands.empty()) miss(word);
    }
    ++taken_;
  }

  void miss(const std::string& word) {
    if (!unknown_) unknown_ = UnknownWord{place_.commands.back(), word};
  }

  void take_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const Option* option = find_option(place_.commands, word.substr(0, equals));
    if (option == nullptr) return miss(word.substr(0, equals));
    if (equals != std::string::npos) {
      place_.given.emplace_back(option, word.substr(equals + 1));
    } else if (option->takes_value()) {
      open_ = option;
    } else {
      place_.given.emplace_back(option, "");
    }
  }

  /// Takes a word of short options: `-n`, `-ff`, `-o` before its value, `-oVALUE`.
  void take_short(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Option* option = find_option(place_.commands, std::string{'-', word[i]});
      if (option == nullptr) {
        if (i == 1) miss(word.substr(0, 2));
        return;
      }
      if (!option->takes_value()) {
        place_.given.emplace_back(option, "");
      } else if (i + 1 < word.size()) {
        place_.given.emplace_back(option, word.substr(i + 1));
        return;
      } else {
        open_ = option;
      }
    }
  }

  /// Returns the argument whose value the next plain word is.
  [[nodiscard]] const Option* next_argument() const {
    std::size_t left = taken_;
    for (const auto& option : place_.commands.back()->options) {
      if (!option->is_argument()) continue;
      if (left < option->most()) return option.get();
      left -= option->most();
    }
    return nullptr;
  }

  Place place_;
  const Option* open_ = nullptr;
  /// Number of arguments of the innermost command so far.
  std::size_t taken_ = 0;
  std::optional<UnknownWord> unknown_;
};

bool is_given(const Place& place, const Option* option) {
  return std::any_of(place.given.begin(), place.given.end(),
                     [option](const auto& pair) { return pair.first == option; });
}

/// Adds options as candidates; their short names only after a single dash.
void add_options(const Place& place, std::vector<std::string>& candidates) {
  for (auto command = place.commands.rbegin(); command != place.commands.rend(); ++command) {
    for (const auto& option : (*command)->options) {
      if (option->is_hidden || option->is_argument() ||
          (option->takes_value() && is_given(place, option.get())))
        continue;
      for (const std::string& name : option->names) {
        const bool is_short = !name.starts_with("--");
        if (is_short && place.word != "-") continue;
        if (!name.starts_with(place.word)) continue;
        if (std::find(candidates.begin(), candidates.end(), name) == candidates.end())
          candidates.push_back(name);
      }
    }
  }
}

}  // namespace

bool is_completion(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == complete_word;
}

std::vector<std::string> words_to_complete(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 2, argv + argc);
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty()) words.emplace_back();
  return words;
}

std::string Place::command() const { return commands.back()->path(); }

std::string Place::value(std::string_view option) const {
  for (const auto& [given_option, text] : given) {
    if (given_option->has_name("--" + std::string(option))) return text;
  }
  return {};
}

Place find_place(const Command& program, std::span<const std::string> words) {
  Walk walk(program);
  for (const std::string& word : words.first(words.size() - 1)) walk.take(word);
  return std::move(walk).end(words.back());
}

std::optional<UnknownWord> find_unknown(const Command& program, std::span<const std::string> words) {
  Walk walk(program);
  for (const std::string& word : words) walk.take(word);
  return std::move(walk).unknown();
}

std::vector<std::string> fixed_candidates(const Place& place) {
  std::vector<std::string> candidates;
  if (place.value_of != nullptr) {
    for (const std::string& choice : place.value_of->choices) {
      if (choice.starts_with(place.word)) candidates.push_back(place.before + choice);
    }
    return candidates;
  }
  if (!place.is_behind_dashes && place.word.starts_with('-')) {
    if (place.before.empty()) add_options(place, candidates);
    return candidates;
  }
  if (place.is_behind_dashes || !place.before.empty()) return candidates;
  for (const auto& further : place.commands.back()->commands) {
    if (further->name.starts_with(place.word)) candidates.push_back(further->name);
  }
  return candidates;
}

bool is_file(const Option& option) {
  return option.type == "FILE" || option.type == "PATH" || option.type == "DIR";
}

int complete_fixed(const Command& program, std::span<const std::string> words, std::string& candidates) {
  const Place place = find_place(program, words);
  for (const std::string& candidate : fixed_candidates(place)) candidates += candidate + '\n';
  return place.value_of != nullptr && is_file(*place.value_of) ? complete_files : 0;
}

}  // namespace resourced::cli::usage
