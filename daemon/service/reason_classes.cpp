#include "daemon/service/reason_classes.hpp"

#include <algorithm>

namespace resourced::daemon::service {

ReasonClasses::Index ReasonClasses::of(std::string_view reason) {
  constexpr std::size_t most_classes = 32;
  constexpr std::size_t longest_name = 32;
  const std::string_view word = reason.substr(0, reason.find_first_of(": "));
  if (word.empty()) return none;
  if (word.size() > longest_name) return other;
  std::string name(word);
  std::ranges::transform(name, name.begin(), [](char c) {
    constexpr char to_lower = 'a' - 'A';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + to_lower) : c;
  });
  const auto first = classes_.begin() + none;
  const auto known = std::find_if(first, classes_.end(), [&](const Class& one) { return one.name == name; });
  if (known != classes_.end()) return static_cast<Index>(known - classes_.begin());
  if (classes_.size() < most_classes) {
    classes_.push_back({std::move(name), 0});
    return static_cast<Index>(classes_.size() - 1);
  }
  // A class that nothing is in any longer makes room.
  const auto free =
      std::find_if(first + 2, classes_.end(), [](const Class& one) { return one.targets == 0; });
  if (free == classes_.end()) return other;
  free->name = std::move(name);
  return static_cast<Index>(free - classes_.begin());
}

}  // namespace resourced::daemon::service
