// Lines for events, see event_view.hpp.
#include "cli/views/event_view.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/printable.hpp"
#include "proto/event_json.hpp"

namespace resourced::cli::views {

std::string format_event(const nlohmann::json& event) {
  const auto entry = [&] {
    try {
      auto read = proto::read_event_entry(event);
      if (read.context == nullptr || read.context->is_object()) return read;
    } catch (const Error&) {
      // The error below names the daemon: which key is wrong does not help an operator.
    }
    throw Error(EPROTO, "the daemon sent something that is not an event");
  }();
  auto line = fmt::format("{:.6f} {}", entry.timestamp, entry.name);
  if (entry.context != nullptr) {
    for (const auto& [key, value] : entry.context->items()) {
      line +=
          fmt::format(" {}={}", key, value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
  }
  return printable(line);
}

}  // namespace resourced::cli::views
