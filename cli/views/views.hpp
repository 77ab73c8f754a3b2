// Converts payloads of the daemon to the rows that a command prints. Pure functions: no daemon, clock or
// terminal. Times are in the time zone of the process. An invalid payload is an Error EPROTO.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
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
  /// Only these states; empty for all.
  std::vector<std::string> states;
  /// Only these targets, an idset or a hostlist; empty for all.
  std::string targets;
  /// Whether status_view() has a row for each reason of drained targets, and for each time.
  bool by_reason = false;
  bool by_time = false;
  /// Whether rows without targets are left out.
  bool skip_empty = false;
};

/// The filter of the scheduler's view, which lacks excluded targets.
struct SchedFilter {
  /// Only these states; empty for all.
  std::vector<std::string> states;
  /// Only these targets; unset for all.
  std::optional<text::IdSet> targets;
  /// Whether rows without targets are left out.
  bool skip_empty = false;
};

/// Names, such as those of properties, each with the ranks that have it.
using NamedSets = std::vector<std::pair<std::string, text::IdSet>>;
/// Returns the names that ranks have, separated by commas, each with the ranks that have exactly these.
[[nodiscard]] NamedSets sets_by_names(const text::IdSet& ranks, const NamedSets& named);

/// The queues of the configuration, as far as sched_view() shows them.
struct QueueFacts {
  /// The queues that the field `queue` shows, with their targets.
  NamedSets shown;
  /// The names of all queues, which the field `propertiesx` leaves out.
  std::set<std::string, std::less<>> names;
};

/// Reads an idset or a hostlist, and leaves out what the inventory lacks, as `flux resource` does.
[[nodiscard]] text::IdSet known_targets(std::string_view text, const rset::ResourceSet& all);

/// Returns the targets that pass the filter. Throws Error EINVAL for a text that is no hostlist.
[[nodiscard]] text::IdSet wanted_targets(const ViewFilter& filter, const rset::ResourceSet& all);

/// Returns the targets by state: each is in the first state that applies of exclude, drained (draining while
/// it has an allocation), torpid, offline and avail. The pairs are in the order avail, draining, drained,
/// exclude, torpid, offline.
[[nodiscard]] std::vector<std::pair<std::string_view, text::IdSet>> targets_by_state(
    const proto::topics::Status& status, const text::IdSet& targets);

/// Splits `a,b` into states. Throws UsageError that lists the known states for an unknown one.
[[nodiscard]] std::vector<std::string> parse_status_states(const std::string& text);
[[nodiscard]] std::vector<std::string> parse_sched_states(const std::string& text);

/// The operator's view of a resource.status payload. Each target is in one state, the first that applies of
/// targets_by_state(). The column `up` tells whether it is available. A state may have two rows: targets of
/// it that are not online have a row of their own, in which the text of the state ends with `*`, as in Flux;
/// the column `online`, not in the standard table, says the same. The filters `offline` and `torpid` mean
/// every target that is not online, or whose agent is silent, whatever its state, and `online` those that are
/// online. A state named in the filter has a row even without targets. Two states are listed only if they are
/// named: `allocated` has the targets with allocations, whatever else they are, and is up if all of them are
/// available; `shrunk` has the hosts that left the inventory, which have no ranks: a filter names them by
/// host. The column `moves`, not in the standard table, has those of moves_of() for the targets of the
/// row. Further columns are only for formats and have the names of Flux: `statex` is the state without `*`,
/// `up.ascii` is y or n, `reason` and `timestamp` are those of drained targets, if the filter asks for their
/// rows.
[[nodiscard]] Listing status_view(const nlohmann::json& status, const ViewFilter& filter = {});

/// Adds the columns that tell more of the cause of a drain than the standard table, and their cells.
void add_cause_columns(Listing& listing);
void add_cause_cells(std::vector<Cell>& row, const module::Drain& drain, const UserName& user_name);

/// The reason and the time of a drain; empty where a filter does not ask for them.
struct Cause {
  std::string reason;
  std::optional<WallTime> time;

  auto operator<=>(const Cause&) const = default;
};
/// Returns the drained ones of the targets by the reason and the time of their drains, as far as the filter
/// names these, in the order of their first ranks.
[[nodiscard]] std::vector<std::pair<Cause, text::IdSet>> sets_by_cause(const proto::topics::Status& status,
                                                                       const text::IdSet& targets,
                                                                       const ViewFilter& filter);

/// Returns the targets of a drain that an update (drain -u) does not change. An update takes over those that
/// the daemon has drained for their health or their silence.
[[nodiscard]] text::IdSet kept_by_update(const module::DrainGroup& drain, const rset::ResourceSet& inventory);

/// The drained targets of a resource.status payload, oldest first, one row for equal reason, time, actor
/// and state, in which a `*` and the column `online` mean the same as in status_view().
/// The columns `user`, `by` and `online` are not in the standard table. `user` is the name of the user, or
/// the number without a name, or the name of the key, host or signal, or the address, that drained them; `by`
/// is the actor (proto/actor_json.hpp). JSON has null where there is none.
[[nodiscard]] Listing drain_view(const nlohmann::json& status, const ViewFilter& filter = {},
                                 const UserName& user_name = {});

/// Adds rows to allocation_columns(), of the `allocations` of a resource.allocations payload; with the column
/// R only `with_resources`. The expiration is `expired` after its time for a reader of the table; JSON has
/// the time. Hosts that are not in the inventory now are in the nodelist, too.
void add_allocations(Listing& listing, const nlohmann::json& allocations, bool with_resources);
[[nodiscard]] Listing allocation_columns();

/// The properties of a resource.status payload, by name, each with those of the filter's targets that have
/// it. A property without any of them is left out.
[[nodiscard]] Listing property_view(const nlohmann::json& status, const ViewFilter& filter = {});
[[nodiscard]] Listing property_columns();

/// The scheduler's view of a resource.sched-status payload: one row for each of free, up, allocated and down.
/// Targets without an allocation are free where allocations are reported, and up elsewhere. `up` has a row
/// without targets only if the filter names it. Where `fields` has `properties`, `propertiesx` (those that
/// are not named as queues) or `queue`, a state has a row for the targets that are the same in these, in the
/// order of their first ranks. `propertiesx`, `queue` and `rlist`, the short form of the resources, are only
/// for formats.
[[nodiscard]] Listing sched_view(const nlohmann::json& sched_status, const SchedFilter& filter = {},
                                 const std::set<std::string, std::less<>>& fields = {},
                                 const QueueFacts& queues = {});

/// Returns the resources in the states of the filter, `all` or none for all of them.
[[nodiscard]] rset::ResourceSet sched_resources(const nlohmann::json& sched_status,
                                                const SchedFilter& filter = {});

/// Return the columns without rows, to check a format before a request is sent to the daemon.
[[nodiscard]] Listing status_columns();
[[nodiscard]] Listing drain_columns();
[[nodiscard]] Listing sched_columns();

/// Returns a line such as `8 Nodes, 32 Cores, 0 GPUs`.
[[nodiscard]] std::string info_line(const rset::ResourceCounts& counts);

/// Returns local time with its zone, `2024-02-29T12:00:00+01:00`; `Z` for UTC. Rounded to the nearest second,
/// as the times of drains are.
[[nodiscard]] std::string format_time(WallTime time);
/// Returns local time in a form of strftime(3), rounded down to whole seconds.
[[nodiscard]] std::string format_local_time(WallTime time, const std::string& form);
/// Returns `5s`, `12m`, `3h` or `8d`: a length of time in whole units, rounded down; `0s` for a negative one.
[[nodiscard]] std::string format_age(Seconds age);
/// Returns a time with its age: `2024-02-29T12:00:00+01:00 (5m ago)`, or `(in 5m)`.
[[nodiscard]] std::string format_moment(WallTime time, WallTime now);
/// Returns `alice`, `uid 1000`, `key login1`, `host node3`, `address 10.0.0.1` or `signal HUP`.
[[nodiscard]] std::string format_actor(const module::Actor& actor, const UserName& user_name);
/// Whether a text is an actor in the form of format_actor() or of a listing of drains; the id of a user
/// matches, too.
[[nodiscard]] bool is_name_of(std::string_view text, const module::Actor& actor, const UserName& user_name);

/// Returns a line for each target for which two agents report in turn (resource.status).
[[nodiscard]] std::string describe_rivals(const nlohmann::json& status, const ViewFilter& filter = {});

/// Returns a line for each group of the filter's targets that waits for a scheduler (resource.status), see
/// moves_text().
[[nodiscard]] std::string describe_moves(const nlohmann::json& status, const ViewFilter& filter = {});

}  // namespace resourced::cli::views
