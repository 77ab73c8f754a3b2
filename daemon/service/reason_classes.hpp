// Counts drained targets by the class of their reason: its first word, in lower case. There are a few classes
// at a time, so that the reasons of a site do not become labels without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace resourced::daemon::service {

class ReasonClasses {
 public:
  /// A class, by its place among all of them.
  using Index = std::uint8_t;
  /// What is not drained has no class.
  static constexpr Index no_class = 0;

  /// Returns the class of a reason, with 0 targets at first. A reason without a word is in the class "none",
  /// and one whose word is long or is one too many is in "other".
  [[nodiscard]] Index of(std::string_view reason);
  /// Adds or removes a target of a class.
  void add(Index index) { ++classes_[index].targets; }
  void remove(Index index) { --classes_[index].targets; }

  /// Calls visit(name, targets) for each class that has or had targets, and for "none" and "other".
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = no_class + 1; i < classes_.size(); ++i) visit(classes_[i].name, classes_[i].targets);
  }

 private:
  static constexpr Index none = 1;
  static constexpr Index other = 2;
  struct Class {
    std::string name;
    std::size_t targets;
  };
  std::vector<Class> classes_{{"", 0}, {"none", 0}, {"other", 0}};
};

}  // namespace resourced::daemon::service
