// The screen of `resourcectl top` with a cluster. A pure function of answers of the daemon and the size of
// the screen.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/views/views.hpp"
#include "core/time.hpp"
#include "proto/topics/peers.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

/// The look of a line. Without colour only `title` and `alarm` differ from the others.
enum class Style { plain, title, alarm, heading, good, warning, bad };

struct Line {
  std::string text;
  Style style = Style::plain;
};

struct Size {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

struct Overview {
  std::string uri;
  WallTime now{};
  /// Why the view is not live, and since when; unset while it is live.
  std::optional<std::string> loss;
  WallTime lost_at{};
  /// Null until the daemon has an inventory.
  const proto::topics::Status* status = nullptr;
  /// The connected peers; unset if the daemon does not report them.
  std::optional<proto::topics::Peers> peers;
  /// The last events, oldest first.
  std::deque<nlohmann::json> events;
};

/// Returns the line that shows whether a view is live.
[[nodiscard]] Line live_line(const Overview& overview, std::size_t columns);

/// Returns at most `size.rows` lines of at most `size.columns` columns: the title, counts of states, and as
/// many partitions and schedulers, drains (oldest first), and events (newest last) as fit.
[[nodiscard]] std::vector<Line> render_overview(const Overview& overview, Size size,
                                                const UserName& user_name);

}  // namespace resourced::cli::views
