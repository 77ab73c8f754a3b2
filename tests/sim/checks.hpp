// Comparisons of the messages of a daemon with the states that a second implementation computes.
#pragma once

#include <concepts>
#include <map>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "core/time.hpp"
#include "peers.hpp"
#include "reference.hpp"

namespace resourced::sim {

/// A rule of the simulation is broken. The text names the rule and the actions before.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Violation with this text unless it holds.
inline void demand(bool holds, const std::string& otherwise) {
  if (!holds) throw Violation(otherwise);
}
/// The same with a text that is made only then.
template <std::invocable Text>
void demand(bool holds, const Text& otherwise) {
  if (!holds) throw Violation(otherwise());
}

/// The timer of a time that has only just come may be due this much later.
inline constexpr Seconds rounding{1e-6};

[[nodiscard]] Reference::Ranks shared(const Reference::Ranks& a, const Reference::Ranks& b);
[[nodiscard]] Reference::Ranks without(const Reference::Ranks& a, const Reference::Ranks& b);
/// Those of these targets alone.
[[nodiscard]] std::map<std::string, Reference::Ranks> properties_of(const Reference& state,
                                                                    const Reference::Ranks& ranks);
/// Whether the view has the properties of its targets in this state. Property changes of an excluded target
/// are sent once it is included again.
[[nodiscard]] bool has_properties(const View& view, const Reference& state);
/// Whether the view is that of this state.
[[nodiscard]] bool shows(const View& view, const Reference& state);
/// The first view of a scheduler that has acquired these targets. Throws Violation.
void check_first(const View& view, const Reference& state, const Reference::Ranks& all);
/// An answer to resource.status. Throws Violation.
void check_status(const nlohmann::json& status, const Reference& state);

}  // namespace resourced::sim
