// Resource events as RFC 18 event log entries with the contexts of RFC 44: the only place where events have
// names. resource-update is RFC 44's and has the expiration alone; property-update (`property-add`,
// `property-remove`, `nodelist`) and shrink (`idset`, `nodelist`) are this project's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "core/module/event.hpp"
#include "core/time.hpp"

namespace resourced::proto {

/// `drain`, `resource-define`, ... An update has the name of what it changes; one of several changes, as only
/// other programs' logs of old can have it, is a resource-update with the keys of all of them.
[[nodiscard]] std::string_view event_name(const module::EventBody& body) noexcept;
/// The same for an event without contents.
template <class Body>
[[nodiscard]] std::string_view event_name() {
  return event_name(module::EventBody(std::in_place_type<Body>));
}

/// `configuration`, `dynamic-discovery`, `reload`, `job-info`, `kvs`.
[[nodiscard]] std::string_view method_name(module::DefineMethod method) noexcept;
/// The method of a name; nothing for any other text.
[[nodiscard]] std::optional<module::DefineMethod> parse_method_name(std::string_view name) noexcept;

/// One line of JSON without a line end: `{"timestamp":T,"name":NAME,"context":{...}}`.
[[nodiscard]] std::string encode_event(const module::Event& event);

/// An entry of an event log as it stands, also one whose name is not known here. Its parts live in the entry.
struct EventEntry {
  WallTime timestamp;
  std::string_view name;
  /// An object in an event of RFC 44, anything in others; null for none.
  const nlohmann::json* context;
};
/// Throws Error EINVAL that names the key which is missing or has the wrong type.
[[nodiscard]] EventEntry read_event_entry(const nlohmann::json& entry);

/// Reads one entry of an event log. Nothing for a name that is not one of RFC 44's or this project's, or one
/// whose state the log does not carry (a definition, a truncation). Earlier daemons wrote property changes
/// and shrink inside resource-update. Throws Error EINVAL that names the key which is missing or wrong.
[[nodiscard]] std::optional<module::Event> decode_event(const nlohmann::json& entry);

}  // namespace resourced::proto
