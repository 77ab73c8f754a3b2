// The names of the states that listings have and filter by. views.hpp declares the parsers of filters.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace resourced::cli::views {

inline constexpr std::array<std::string_view, 6> status_states = {"avail",   "draining", "drained",
                                                                  "exclude", "torpid",   "offline"};
/// The state of hosts that have left the inventory.
inline constexpr std::string_view shrunk_state = "shrunk";
/// The states of status that `all` does not include: they have targets of other states, or none.
inline constexpr std::array<std::string_view, 3> further_status_states = {"online", "allocated",
                                                                          shrunk_state};
inline constexpr std::array<std::string_view, 4> sched_states = {"free", "up", "allocated", "down"};

[[nodiscard]] inline bool wants(const std::vector<std::string>& states, std::string_view state) {
  return std::ranges::find(states, state) != states.end();
}

}  // namespace resourced::cli::views
