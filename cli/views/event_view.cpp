// Lines for events, see event_view.hpp.
#include "cli/views/event_view.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/printable.hpp"

namespace resourced::cli::views {

std::string format_event(const nlohmann::json& event) {
  const auto bad = [] { return Error(EPROTO, "the daemon sent something that is not an event"); };
  if (!event.is_object() || !event.contains("timestamp") || !event["timestamp"].is_number() ||
      !event.contains("name") || !event["name"].is_string()) {
    throw bad();
  }
  auto line =
      fmt::format("{:.6f} {}", event["timestamp"].get<double>(), event["name"].get_ref<const std::string&>());
  if (const auto context = event.find("context"); context != event.end()) {
    if (!context->is_object()) throw bad();
    for (const auto& [key, value] : context->items()) {
      line +=
          fmt::format(" {}={}", key, value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
  }
  return printable(line);
}

}  // namespace resourced::cli::views
