// Resource events as RFC 18 event log entries, with their names and the contexts of RFC 44. resource-update
// is RFC 44's and has the expiration alone; property-update (`property-add`, `property-remove`, `nodelist`),
// shrink and unshrink (`idset`, `nodelist`), drain-schedule (`idset`, `nodelist`, `from`, `until`, `reason`)
// and drain-cancel (`idset`, `nodelist`) are this project's own. So are the records of the ledger, which a
// journal shows only if it is asked for them: alloc (`allocations`: an array of proto/allocation_json.hpp)
// and free (`ids`; `nodelist` of the targets that were freed; `idset` of them if they are a part of the one
// allocation).
//
// The context of an event with an actor also has `by` (proto/actor_json.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "core/module/event.hpp"
#include "core/time.hpp"

namespace resourced::proto {

// The names of two entries that readers of logs and journals treat apart: neither changes the state of a
// target.
inline constexpr std::string_view define_name = "resource-define";
/// The entry stands for those before it, which were removed.
inline constexpr std::string_view truncate_name = "truncate";

// The records of the ledger.
inline constexpr std::string_view alloc_name = "alloc";
inline constexpr std::string_view free_name = "free";
[[nodiscard]] constexpr bool is_ledger_name(std::string_view name) noexcept {
  return name == alloc_name || name == free_name;
}

/// `drain`, `resource-define`, ... The name of an update depends on what it changes; an update with several
/// changes, which only older logs of other programs have, is a resource-update with the keys of all of them.
[[nodiscard]] std::string_view event_name(const module::EventBody& body) noexcept;

/// `configuration`, `dynamic-discovery`, `reload`, `job-info`, `kvs`.
[[nodiscard]] std::string_view method_name(module::DefineMethod method) noexcept;
/// The method of a name; nothing for any other text.
[[nodiscard]] std::optional<module::DefineMethod> parse_method_name(std::string_view name) noexcept;

/// One line of JSON without a line end: `{"timestamp":T,"name":NAME,"context":{...}}`.
[[nodiscard]] std::string encode_event(const module::Event& event);
/// The line of an event by this actor, from encode_event(), as it is without `by`.
[[nodiscard]] std::string without_actor(std::string line, const std::optional<module::Actor>& by);

/// An entry of an event log that is not decoded, also one with an unknown name. Refers to the entry.
struct EventEntry {
  WallTime timestamp;
  std::string_view name;
  /// An object; null for none.
  const nlohmann::json* context;
};
/// Throws Error EINVAL that names the key which is missing or has the wrong type.
[[nodiscard]] EventEntry read_event_entry(const nlohmann::json& entry);

/// Reads one entry of an event log. Nothing for a name that is neither in RFC 44 nor of this project, and for
/// events whose state is not in the log (a definition, a truncation). Earlier daemons wrote property changes
/// and shrink inside resource-update. Throws Error EINVAL that names the key which is missing or wrong.
[[nodiscard]] std::optional<module::Event> decode_event(const nlohmann::json& entry);
/// The `overwrite` of the context of a recorded drain. Flux wrote drains without this key once; their reason
/// replaces the former one. Throws Error EINVAL.
[[nodiscard]] module::Overwrite read_drain_overwrite(const nlohmann::json& context);

}  // namespace resourced::proto
