// Payloads of reads of the present state: resource.status and resource.sched-status as Flux's command line
// shows them, resource.get, and attr.get. Only the request attr.get has a payload. IDSET is RFC 22, R is RFC
// 20, HOSTLIST is RFC 29.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/acquisition.hpp"
#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::proto::topics {

// The answer of a daemon that follows another one begins with `"sequence": N`, the last event of the state.

/// The part of a status that no event tells, as only the daemon that schedulers and agents talk to has it.
struct Live {
  /// The text of encode_partitions().
  const std::string& partitions;
  /// Targets whose agents run checks, the last of which has failed, or none of which has ended since the
  /// hello (nodes::Health).
  const text::IdSet& unchecked;
  /// Targets for which two agents report in turn, with the origins of both.
  const std::map<text::IdSet::Id, std::string>& rivals;
};

/// Returns `partitions` of resource.status, `{NAME: {"targets": IDSET, "held": BOOL, "waiting": IDSET,
/// "leaving": IDSET}}`, with the name "" for the targets in no partition. Waiting are targets that the holder
/// of another part still has, and targets of `acquirable` that the holder of this part gets with its next
/// acquire; leaving are those that the holder of this part still has although they no longer belong to it.
/// Returns an empty text where a status has no such key: in an instance of Flux, and where the inventory is
/// not divided and no target waits for its scheduler.
[[nodiscard]] std::string encode_partitions(const module::State& state,
                                            const module::Acquisition& acquisition,
                                            const text::IdSet& acquirable);

/// Returns the answer to resource.status: `{"R": R, "drain": {IDSET: {"timestamp": T, "reason": STRING, "by":
/// ACTOR?, TERMS}}, "online": IDSET, "offline": IDSET, "exclude": IDSET, "torpid": IDSET, "allocated":
/// IDSET?, "unchecked": IDSET?}`. R is without its key `scheduling`. TERMS are the other terms of a drain
/// (proto/drain_json.hpp). Targets that one ACTOR (proto/actor_json.hpp) drained within one second on the
/// same terms are one entry, under the rounded time; the reason "" means none. `unchecked` and, if there are
/// any, `rivals`, `{RANK: STRING}`, are those of `live`, without which there are none. `partitions` is that
/// of `live`, if it has any. An instance of Flux has none of these three, nor `allocated`. `shrunk` is the
/// HOSTLIST of the targets of State::configured that left for good, if there are any, `returning` that of
/// those among them that will return. Where drains are scheduled, `scheduled` has the next one of each
/// target, `{IDSET: {"from": T, "reason": STRING, "by": ACTOR?, TERMS}}`, and `schedules` all, `[{"targets":
/// IDSET, "from": T, ...}]` with the same keys. If drains or properties wait for hosts that the inventory
/// lacks, `absent` is `{"drain": [{"nodelist": HOSTLIST, "timestamp": T, "reason": STRING, "by": ACTOR?,
/// TERMS}]?, "scheduled": [{"nodelist": HOSTLIST, "from": T, "reason": STRING, "by": ACTOR?, TERMS}]?,
/// "properties": [{"nodelist": HOSTLIST, "name": STRING, "op": "add" | "remove"}]?}`. An instance of Flux has
/// no such key.
[[nodiscard]] std::string encode_status(const module::State& state, const Live* live,
                                        std::optional<std::uint64_t> sequence = std::nullopt);

/// Returns the answer to resource.status-at, the status at a time: `{"at": T}` and the keys of
/// resource.status without `live`, which the log does not have.
[[nodiscard]] std::string encode_status_at(const module::State& state, WallTime at);

/// Returns the time in the request `{"at": T}`. Throws Error EPROTO for a key that is missing or has another
/// type.
[[nodiscard]] WallTime parse_status_at(const nlohmann::json& payload);
[[nodiscard]] nlohmann::json encode_status_at_request(WallTime at);

/// The parts of the inventory that are acquired separately, as an operator's tool reads them.
struct Division {
  struct Partition {
    text::IdSet targets;
    text::IdSet waiting;
    text::IdSet leaving;
    bool held = false;
  };
  /// Partitions by name; empty where the inventory is not divided.
  std::map<std::string, Partition> partitions;
  /// The targets in no partition; unset where the answer does not tell of them.
  std::optional<Partition> rest;
};

/// Returns the answer to a resource.reload without a path, `{"partitions": PARTITIONS}` with the text of
/// encode_partitions(). Requires a text that is not empty: without partitions the answer has no payload.
[[nodiscard]] std::string encode_reloaded(const std::string& partitions);
/// Reads `partitions` of the answer to resource.reload or resource.status; null means an answer without
/// payload. Throws Error as parse_status() does.
[[nodiscard]] Division parse_division(const nlohmann::json& payload);

/// The answer to resource.status, as an operator's tool reads it.
struct Status : Division {
  /// Drains and properties that wait for hosts which the inventory lacks. A host is named once for each of
  /// its targets.
  struct Absent {
    struct OfDrain : module::Drain {
      text::Hostlist hosts;
    };
    struct OfProperty {
      std::string name;
      /// Whether the property was added, or else removed.
      bool added;
      text::Hostlist hosts;
    };
    std::vector<OfDrain> drains;
    std::vector<OfDrain> scheduled;
    std::vector<OfProperty> properties;

    /// Returns all these hosts, sorted.
    [[nodiscard]] text::Hostlist hosts() const;
  };
  rset::ResourceSet inventory;
  /// A drain without a reason has none, and not an empty one.
  std::vector<module::DrainGroup> drains;
  /// All scheduled drains; a target may have several.
  std::vector<module::DrainGroup> scheduled;
  text::IdSet online;
  text::IdSet exclude;
  text::IdSet torpid;
  /// Targets with an allocation; empty where the answer has no such key.
  text::IdSet allocated;
  /// Targets whose agents run checks, and have not reported one that passed; empty where the answer has no
  /// such key.
  text::IdSet unchecked;
  /// Targets for which two agents report in turn, with the origins of both, for people.
  std::map<text::IdSet::Id, std::string> rivals;
  /// Hosts of targets that left for good, and of those among them that will return.
  text::Hostlist shrunk;
  text::Hostlist returning;
  Absent absent;
};

/// Reads a status. Throws Error that says which key of the daemon's answer is missing or wrong: EPROTO for
/// one that is missing, has another type or is no valid R, EINVAL for a text that is no IDSET.
[[nodiscard]] Status parse_status(const nlohmann::json& payload);

/// The part of a parent's status that an enclosed instance reads, in ranks of `inventory`.
struct ParentStatus {
  rset::ResourceSet inventory;
  text::IdSet drained;
  text::IdSet offline;
  text::IdSet torpid;
};

/// Reads that part. Throws Error that names the key which is missing or wrong; other keys are ignored.
[[nodiscard]] ParentStatus parse_parent_status(const nlohmann::json& payload);

/// The answer to resource.sched-status, `{"all": R, "allocated": R, "down": R, "reported": IDSET?}`, with
/// `all` and `down` without excluded targets, consists of the text before `allocated`, encode_allocated(),
/// and the text after it. `reported` are targets whose scheduler reports its allocations: of these, a target
/// without an allocation is free. Without the key this holds for all targets, as in an instance of Flux.
struct SchedStatusText {
  std::string before;
  std::string after;
};
[[nodiscard]] SchedStatusText encode_sched_status(const module::State& state,
                                                  const std::optional<text::IdSet>& reported = std::nullopt,
                                                  std::optional<std::uint64_t> sequence = std::nullopt);
/// Returns `allocated`, with the properties that the targets have in the inventory.
[[nodiscard]] std::string encode_allocated(rset::ResourceSet allocated, const rset::ResourceSet& inventory);

struct SchedStatus {
  rset::ResourceSet all;
  rset::ResourceSet allocated;
  rset::ResourceSet down;
  /// Targets whose scheduler reports its allocations: all where the answer has no such key.
  text::IdSet reported;
};
/// Reads the answer. Throws Error as parse_status() does.
[[nodiscard]] SchedStatus parse_sched_status(const nlohmann::json& payload);

/// Returns the answer to resource.get: `{"R": R, "method": METHOD}`, where METHOD is a method_name().
[[nodiscard]] std::string encode_inventory(const module::State& state,
                                           std::optional<std::uint64_t> sequence = std::nullopt);

/// Returns the request attr.get for a broker attribute, `{"name": STRING}`. The parser throws EPROTO for a
/// name that is missing or not a string, and ignores other keys, as Flux does.
[[nodiscard]] nlohmann::json encode_attr_get(std::string_view name);
[[nodiscard]] std::string parse_attr_get(const nlohmann::json& payload);
/// Returns the answer to attr.get of `hostlist`: `{"value": HOSTLIST, "flags": 1}`, where 1 means that
/// clients cannot set it. The position of a host in the list is its rank, so targets that left for good keep
/// their positions, and ranks that no R has are named `unknown-RANK`. Throws Error ERANGE if the highest rank
/// is not below Hostlist::max_expansion.
[[nodiscard]] std::string encode_hostlist(const module::State& state);

}  // namespace resourced::proto::topics
