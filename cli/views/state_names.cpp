// Filters by state, see views.hpp.
#include "cli/views/state_names.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"

namespace resourced::cli::views {

namespace {

using Names = std::span<const std::string_view>;
/// A name for several states.
using Alias = std::pair<std::string_view, std::vector<std::string>>;

bool has(Names names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

/// Reads names of states; `further` are states that `all` does not include.
std::vector<std::string> parse_states(const std::string& text, Names known,
                                      const std::vector<Alias>& aliases = {}, Names further = {}) {
  std::vector<std::string> states;
  std::size_t start = 0;
  while (start <= text.size()) {
    const auto comma = std::min(text.find(',', start), text.size());
    const std::string_view state = std::string_view(text).substr(start, comma - start);
    start = comma + 1;
    if (const auto alias = std::ranges::find(aliases, state, &Alias::first); alias != aliases.end()) {
      states.insert(states.end(), alias->second.begin(), alias->second.end());
      continue;
    }
    if (state == "all") {
      states.insert(states.end(), known.begin(), known.end());
      continue;
    }
    if (state == "housekeeping")
      throw UsageError(
          "no state housekeeping: Flux's job manager knows it alone, see flux housekeeping list");
    if (!has(further, state) && !has(known, state)) {
      throw UsageError(fmt::format("unknown state \"{}\", known are: {}, all{}{}", state,
                                   fmt::join(known, ", "), further.empty() ? "" : ", ",
                                   fmt::join(further, ", ")));
    }
    states.emplace_back(state);
  }
  return states;
}

}  // namespace

std::vector<std::string> parse_status_states(const std::string& text) {
  return parse_states(text, status_states, {{"drain", {"draining", "drained"}}, {"excluded", {"exclude"}}},
                      further_status_states);
}

std::vector<std::string> parse_sched_states(const std::string& text) {
  return parse_states(text, sched_states);
}

}  // namespace resourced::cli::views
