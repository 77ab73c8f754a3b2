// Resource events as RFC 18 event log entries, with their names and the contexts of RFC 44. resource-update
// is RFC 44's and has the expiration alone; property-update (`property-add`, `property-remove`, `nodelist`),
// shrink and unshrink (`idset`, `nodelist`), forget (`nodelist`), drain-schedule (`idset`, `nodelist`,
// `from`, the terms of the drain) and drain-cancel (`idset`, `nodelist`, `from` if not all are cancelled) are
// this project's own. So is evict (`idset`, `nodelist`, `partition`, `since`, `holder`: an actor as in `by`;
// `reason`), which a journal shows only on request. So are the records of the ledger, which a journal shows
// only on request: alloc
// (`allocations`: an array of proto/allocation_json.hpp) and free (`ids`; `partition` of all of them, which
// earlier versions did not write; `nodelist`: the freed targets; `idset` of them if they are a part of one
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
#include "proto/documents.hpp"

namespace resourced::proto {

// Names of two entries that readers of logs and journals handle separately: neither changes the state of a
// target.
inline constexpr std::string_view define_name = "resource-define";
inline constexpr std::string_view loss_name = "loss";
/// A `truncate` entry replaces the removed entries before it.
inline constexpr std::string_view truncate_name = "truncate";

// Names of the records of the ledger.
inline constexpr std::string_view alloc_name = "alloc";
inline constexpr std::string_view alloc_update_name = "alloc-update";
inline constexpr std::string_view free_name = "free";
[[nodiscard]] constexpr bool is_ledger_name(std::string_view name) noexcept {
  return name == alloc_name || name == alloc_update_name || name == free_name;
}

inline constexpr std::string_view evict_name = "evict";

/// The consumers to which a journal shows an event.
enum class Audience {
  everyone,
  /// The consumers that ask for the records of the ledger.
  ledger,
  /// The consumers that ask for this project's own records.
  own,
  /// No consumer: only schedulers and the present state show the event. The log of an instance lacks it.
  nobody
};
/// Returns the audience of the events with this name.
[[nodiscard]] constexpr Audience audience_of(std::string_view name) noexcept {
  if (is_ledger_name(name)) return Audience::ledger;
  if (name == evict_name) return Audience::own;
  return name == loss_name ? Audience::nobody : Audience::everyone;
}

/// Returns the name of an event: `drain`, `resource-define`, ...
[[nodiscard]] std::string_view event_name(const module::EventBody& body) noexcept;

/// Returns the name of a method: `configuration`, `dynamic-discovery`, `reload`, `job-info`, `kvs`.
[[nodiscard]] std::string_view method_name(module::DefineMethod method) noexcept;
/// Returns the method of a name; nothing for any other text.
[[nodiscard]] std::optional<module::DefineMethod> parse_method_name(std::string_view name) noexcept;

/// Returns an event as one line of JSON without a line end: `{"timestamp":T,"name":NAME,"context":{...}}`.
[[nodiscard]] std::string encode_event(const module::Event& event);
/// Returns a JSON object with the values that apply() needs of an event and that its line does not have; an
/// empty text if there are none. A restart has `brokers` and `drains`; a definition has `R`, `configured` and
/// `replaced`, which are documents, with `exclude`, `properties` and `loaded`. `resources` is the R of a
/// definition as text.
[[nodiscard]] std::string encode_rest(const module::Event& event, const DocumentText& resources,
                                      Documents& documents);
/// The event of a line of this program's own log, with what encode_rest() has made of it. Throws Error EINVAL
/// if it is no event, and what `find` throws.
[[nodiscard]] module::Event decode_complete(const nlohmann::json& entry, std::string_view rest,
                                            const FindDocument& find);

/// Returns a line of encode_event() without the key `by`, which is that of this actor.
[[nodiscard]] std::string without_actor(std::string line, const std::optional<module::Actor>& by);

/// An undecoded entry of an event log, whose name may be unknown. It refers to the JSON of the entry.
struct EventEntry {
  WallTime timestamp;
  std::string_view name;
  /// The context, an object; null if there is none.
  const nlohmann::json* context;
};
/// Reads an entry. Throws Error EINVAL that names the key which is missing or has the wrong type.
[[nodiscard]] EventEntry read_event_entry(const nlohmann::json& entry);

/// Decodes one entry of an event log. Returns nothing for a name that is neither in RFC 44 nor of this
/// project, and for events whose state is not in the log (a definition, a truncation). Earlier daemons wrote
/// property changes and shrink inside resource-update, which are read as the events of today. Throws Error
/// EINVAL that names the key which is missing or wrong.
[[nodiscard]] std::optional<module::Event> decode_event(const nlohmann::json& entry);
/// Reads `overwrite` in the context of a recorded drain. Earlier versions of Flux wrote drains without this
/// key, whose reason replaces the former one. Throws Error EINVAL.
[[nodiscard]] module::Overwrite read_drain_overwrite(const nlohmann::json& context);

}  // namespace resourced::proto
