// Which requests a client of a cluster may send again. A change is never sent twice: the second one might
// come after other changes, and would then mean something else. It is sent again only when the daemon has
// said that it made nothing of it. A question is sent again when its answer was lost.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace resourced::client {

/// A request that changes nothing and has one response. Not resource.wait: its sender asks for something else
/// after a loss.
[[nodiscard]] inline bool is_question(std::string_view topic) noexcept {
  constexpr std::array<std::string_view, 14> questions{
      "resource.allocations", "resource.peers",  "feasibility.check",     "resource.status",
      "resource.status-at",   "resource.report", "resource.sched-status", "resource.get",
      "resource.stats-get",   "resource.ready",  "resource.metrics",      "resource.ping",
      "config.get",           "attr.get"};
  return std::ranges::find(questions, topic) != questions.end();
}

/// A request by which an operator or a scheduler changes the state.
[[nodiscard]] inline bool is_change(std::string_view topic) noexcept {
  constexpr std::array<std::string_view, 10> changes{
      "resource.drain",      "resource.undrain",          "resource.property", "resource.expiration",
      "resource.shrink",     "resource.unshrink",         "resource.alloc",    "resource.free",
      "resource.force-free", "resource.expiration-update"};
  return std::ranges::find(changes, topic) != changes.end();
}

}  // namespace resourced::client
