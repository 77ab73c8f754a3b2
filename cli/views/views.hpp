// Converts payloads of the daemon to the rows that a command prints. Pure functions: no daemon, clock or
// terminal. Times are in the time zone of the process. An invalid payload is an Error EPROTO.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/views/event_text.hpp"
#include "cli/views/listing.hpp"
#include "core/module/actor.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

struct ViewFilter {
  /// Only these states; empty: all.
  std::vector<std::string> states;
  /// Only these targets, idset or hostlist; empty: all.
  std::string targets;
};

/// The targets that pass the filter. Throws Error as parse_targets() does.
[[nodiscard]] text::IdSet wanted_targets(const ViewFilter& filter, const rset::ResourceSet& all);

/// The health of each of these targets: the first state that applies of exclude, drained (draining while
/// something of it is allocated), torpid, offline and avail. The pairs are in the order avail, draining,
/// drained, exclude, torpid, offline.
[[nodiscard]] std::vector<std::pair<std::string_view, text::IdSet>> targets_by_state(
    const proto::topics::Status& status, const text::IdSet& targets);

/// Splits `a,b`. Throws UsageError that lists the known states for an unknown one.
[[nodiscard]] std::vector<std::string> parse_status_states(const std::string& text);
[[nodiscard]] std::vector<std::string> parse_sched_states(const std::string& text);

/// The operator's view of a resource.status payload. Each target is in one state, the first that applies of
/// targets_by_state(). The column `up` tells whether it is available. A state may have two rows: targets of
/// it that are not online have a row of their own, in which the text of the state ends with `*`, as in Flux;
/// the column `online`, not in the standard table, says the same. The filter `offline` means every target
/// that is not online, whatever its state. A state named in the filter has a row even without targets. The
/// state `shrunk` has the hosts that left the inventory, which have no ranks; it is listed only if it is
/// named, and is empty if the filter has targets. The column `moves`, not in the standard table, lists the
/// targets of the row that move to another partition once their holder releases them: `[{"ranks", "from",
/// "to"}]`, with null for targets outside of all partitions.
[[nodiscard]] Listing status_view(const nlohmann::json& status, const ViewFilter& filter = {});

/// The cells of the columns `user` and `by` of an actor.
[[nodiscard]] std::pair<Cell, Cell> actor_cells(const std::optional<module::Actor>& by,
                                                const UserName& user_name);

/// The targets of a drain that an update (drain -u) leaves as they are. It takes over those that the daemon
/// has drained for their health or their silence.
[[nodiscard]] text::IdSet kept_by_update(const proto::topics::Status::Drain& drain,
                                         const rset::ResourceSet& inventory);

/// The drained targets of a resource.status payload, oldest first, one row for equal reason, time and actor.
/// The columns `user` and `by` are not in the standard table. `user` is the name of the user, or the number
/// without a name, or the name of the key, host or signal, or the address, that drained them; `by` is the
/// actor (proto/actor_json.hpp). JSON has null where there is none.
[[nodiscard]] Listing drain_view(const nlohmann::json& status, const ViewFilter& filter = {},
                                 const UserName& user_name = {});

/// The `allocations` of a resource.allocations payload. The expiration is `expired` after its time for a
/// reader of the table; JSON has the time. Hosts that are not in the inventory now are in the nodelist, too.
[[nodiscard]] Listing allocation_view(const nlohmann::json& allocations);
[[nodiscard]] Listing allocation_columns();

/// The names of properties, separated by commas, and the ranks that have exactly these, in the order of their
/// first ranks.
[[nodiscard]] std::vector<std::pair<std::string, text::IdSet>> property_sets(const rset::ResourceSet& set);

/// The properties of a resource.status payload, by name, each with those of the filter's targets that have
/// it. A property without any of them is left out.
[[nodiscard]] Listing property_view(const nlohmann::json& status, const ViewFilter& filter = {});
[[nodiscard]] Listing property_columns();

/// The scheduler's view of a resource.sched-status payload: one row for each of free, up, allocated and down.
/// Targets without an allocation are free where allocations are reported, and up elsewhere. `up` has no row
/// without targets, unless the filter names it. `by_properties` makes a row of the targets of each state that
/// have the same properties, in the order of their first ranks.
[[nodiscard]] Listing sched_view(const nlohmann::json& sched_status, const ViewFilter& filter = {},
                                 bool by_properties = false);

/// The resources in the states of the filter, `all` or none for all of them.
[[nodiscard]] rset::ResourceSet sched_resources(const nlohmann::json& sched_status,
                                                const ViewFilter& filter = {});

/// The columns without rows, to check a format before a request is sent to the daemon.
[[nodiscard]] Listing status_columns();
[[nodiscard]] Listing drain_columns();
[[nodiscard]] Listing sched_columns();

/// `8 Nodes, 32 Cores, 0 GPUs`
[[nodiscard]] std::string info_line(const rset::ResourceCounts& counts);

/// `2024-02-29T12:00:00+01:00`, local time with its zone; `Z` for UTC. The nearest second, as the times of
/// drains are rounded.
[[nodiscard]] std::string format_time(WallTime time);
/// `5s`, `12m`, `3h` or `8d`: whole units of a length of time, rounded down; `0s` for less than none.
[[nodiscard]] std::string format_age(Seconds age);
/// `alice`, `uid 1000`, `key login1`, `host node3`, `address 10.0.0.1` or `signal HUP`.
[[nodiscard]] std::string format_actor(const module::Actor& actor, const UserName& user_name);

/// A line for each group of targets that moves between partitions once its holder releases them
/// (resource.status). Uses only the targets of the filter.
[[nodiscard]] std::string describe_moves(const nlohmann::json& status, const ViewFilter& filter = {});

}  // namespace resourced::cli::views
