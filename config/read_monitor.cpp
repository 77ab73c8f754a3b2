// The [monitor] table, and what it asks of [resource].

#include <cmath>

#include <fmt/format.h>

#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

namespace {

constexpr std::int64_t most_flaps = 1000;
// Upper bound of `coalesce`, in seconds.
constexpr double longest_coalesce = 60;

MonitorMode read_mode(const TableReader& monitor) {
  const std::string* text = monitor.string("mode");
  if (!text) return MonitorMode::fixed;
  for (const MonitorMode mode : {MonitorMode::fixed, MonitorMode::agents}) {
    if (*text == to_text(mode)) return mode;
  }
  monitor.fail("mode", fmt::format("{} is neither static nor agents", resourced::quoted(*text)));
}

double read_silence(const TableReader& monitor, std::string_view key, double otherwise) {
  const double seconds = monitor.duration(key).value_or(otherwise);
  if (seconds == 0) monitor.fail(key, "must be more than 0");
  return seconds;
}

}  // namespace

std::string_view to_text(MonitorMode mode) noexcept {
  return mode == MonitorMode::agents ? "agents" : "static";
}

Monitor read_monitor(const Document& document) {
  Monitor result;
  const Node* node = find_member(*document.root().table(), "monitor");
  if (!node) return result;
  const KeyPath path{nullptr, "monitor"};
  const TableReader monitor(document, *node, path,
                            {"mode", "torpid-after", "offline-after", "grace", "coalesce", "flap-count",
                             "flap-window", "lost-after"});
  result.mode = read_mode(monitor);
  result.torpid_after = read_silence(monitor, "torpid-after", result.torpid_after);
  result.offline_after = read_silence(monitor, "offline-after", result.offline_after);
  result.grace = monitor.duration("grace").value_or(result.grace);
  result.coalesce = monitor.duration("coalesce").value_or(result.coalesce);
  if (result.coalesce > longest_coalesce)
    monitor.fail("coalesce", fmt::format("{}s is more than {}s", result.coalesce, longest_coalesce));
  if (const auto count = monitor.integer("flap-count", 0, most_flaps))
    result.flap_count = static_cast<std::size_t>(*count);
  result.flap_window = monitor.duration("flap-window").value_or(result.flap_window);
  result.lost_after = monitor.duration("lost-after").value_or(result.offline_after);
  return result;
}

void check_discovery(const Config& config) {
  const Resource& resource = config.resource;
  if (config.monitor.mode != MonitorMode::agents || resource.has_inventory() || !resource.parent_uri.empty())
    return;
  if (!resource.size && std::isinf(resource.discovery_timeout))
    throw config.fault("resource.size",
                       "is needed, or a discovery-timeout: nothing says how many agents to wait for");
}

}  // namespace resourced::config
