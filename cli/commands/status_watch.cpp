#include "cli/commands/status_watch.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands/live_cluster.hpp"
#include "cli/commands/live_display.hpp"
#include "cli/views/overview.hpp"
#include "cli/views/text_width.hpp"

namespace resourced::cli::commands {

namespace {

views::Style style_of(std::string_view line) {
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view state = line.substr(begin, line.find(' ', begin) - begin);
  if (state == "avail") return views::Style::good;
  if (state == "drained") return views::Style::warning;
  return state == "offline" || state == "torpid" ? views::Style::bad : views::Style::plain;
}

views::Line title(const Context& context, const std::string& uri, const LiveCluster& cluster,
                  std::size_t columns) {
  views::Overview overview;
  overview.uri = uri;
  overview.now = context.now();
  if (cluster.loss()) overview.loss = cluster.loss()->what();
  overview.lost_at = cluster.lost_at();
  return views::live_line(overview, columns);
}

}  // namespace

std::string status_text(const nlohmann::json& status, const views::OutputOptions& output,
                        const views::ViewFilter& filter) {
  std::string text = views::render(views::status_view(status, filter), output);
  // Programs parse the other formats, so only the standard table is followed by text.
  const bool plain = !output.json && !output.no_header && output.format.empty();
  if (plain) text += views::describe_moves(status, filter) + views::describe_rivals(status, filter);
  return text;
}

void watch_status(Context& context, const views::OutputOptions& output, const views::ViewFilter& filter) {
  LiveDisplay display;
  display.render = [&](const LiveCluster& cluster, std::optional<views::Size> size) {
    std::vector<views::Line> lines;
    if (size) lines.push_back(title(context, context.connection().uri(), cluster, size->columns));
    if (cluster.status().is_null()) return lines;
    const std::string text = status_text(cluster.status(), output, filter);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      begin = end + 1;
      if (!size) {
        lines.push_back({line});
      } else if (lines.size() < size->rows) {
        lines.push_back({views::fit(line, size->columns), style_of(line)});
      }
    }
    return lines;
  };
  show_live(context, display);
}

}  // namespace resourced::cli::commands
