// Defines which requests a connection to a cluster may send again. A change is sent again only when the
// daemon has reported that it did not make it: otherwise the second one might arrive after other changes, and
// would then mean something else. client/ledger.hpp sends changes whose answer was lost again, marked as
// repeated. A question is sent again when its answer was lost.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "client/connection.hpp"
#include "core/error.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::client {

/// Whether a request changes nothing and has one response. Not resource.wait, whose sender repeats it
/// differently after a loss.
[[nodiscard]] inline bool is_question(std::string_view topic) noexcept {
  constexpr std::array<std::string_view, 17> questions{
      "resource.allocations",  "resource.peers",     "feasibility.check",
      "resource.status",       "resource.status-at", "resource.report",
      "resource.sched-status", "resource.get",       "resource.stats-get",
      "resource.ready",        "resource.metrics",   "resource.ping",
      "resource.cluster",      "config.get",         "attr.get",
      "resource.user-names",   "resource.version"};
  return std::ranges::find(questions, topic) != questions.end();
}

/// Whether a request changes the state.
[[nodiscard]] inline bool is_change(std::string_view topic) noexcept {
  constexpr std::array<std::string_view, 16> changes{"resource.drain",        "resource.undrain",
                                                     "resource.drain-cancel", "resource.property",
                                                     "resource.expiration",   "resource.shrink",
                                                     "resource.unshrink",     "resource.forget",
                                                     "resource.alloc",        "resource.free",
                                                     "resource.alloc-update", "resource.force-free",
                                                     "resource.evict",        "resource.expiration-update",
                                                     "resource.reload",       "resource.monitor-force-down"};
  return std::ranges::find(changes, topic) != changes.end();
}

/// Whether a daemon has refused a request because it does not lead. In answers to resource.wait the errno
/// alone does not show that.
[[nodiscard]] inline bool is_of_standby(std::string_view topic, const Error& error) {
  return topic == "resource.wait" ? proto::topics::is_of_standby(error) : error.errnum() == EHOSTUNREACH;
}

/// Whether the daemon has ended a request without an answer, or does not lead its cluster: it, or the next
/// leader, may be asked again.
[[nodiscard]] inline bool is_interruption(const Response& response) {
  const int errnum = response.error().errnum();
  if (response.local()) return errnum == ECONNRESET;
  return errnum == ECANCELED || errnum == EAGAIN || proto::topics::is_of_standby(response.error());
}

/// Whether a clean shutdown of the daemon has ended a request.
[[nodiscard]] inline bool is_shut_down(const Error& error) {
  return (error.errnum() == ECANCELED || error.errnum() == ENODATA) &&
         std::string_view(error.what()) == "the resource module was unloaded";
}

}  // namespace resourced::client
