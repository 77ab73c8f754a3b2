// How nodes are watched ([monitor]), as the configuration says it. What the times mean to a target is told in
// core/nodes/monitor.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/time.hpp"

namespace resourced::config {

/// Whether every target is online always, or as its node agent shows it.
enum class MonitorMode : std::uint8_t { fixed, agents };

/// `static` or `agents`. Throws Error EINVAL for another text.
[[nodiscard]] MonitorMode parse_monitor_mode(std::string_view text);
[[nodiscard]] std::string_view to_text(MonitorMode mode) noexcept;

/// [monitor]. `forever` for never.
struct Monitor {
  MonitorMode mode = MonitorMode::fixed;
  Seconds torpid_after{30};    ///< more than 0
  Seconds offline_after{120};  ///< more than 0
  Seconds grace{10};
  Seconds coalesce{0.2};       ///< at most a minute
  std::size_t flap_count = 5;  ///< 0: flapping is not looked at
  Seconds flap_window{600};
  Seconds lost_after{120};  ///< as offline_after unless it is set
  friend bool operator==(const Monitor&, const Monitor&) = default;
};

}  // namespace resourced::config
