// The payloads of the resource service, to and from core types: requests are checked key by key, answers are
// written as JSON text. Keys and errors: RFC 28, and drain, undrain and status as operators know them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "core/module/acquisition.hpp"
#include "core/module/delta.hpp"
#include "core/module/module.hpp"
#include "core/module/node_report.hpp"

namespace resourced::proto {

// Each throws Error EPROTO for a missing key or a wrong type, and EINVAL for a value that is not allowed.
/// The partition that an acquire asks for: `{"partition": NAME}`, or none with `{}`. EPROTO for any other
/// key.
[[nodiscard]] std::optional<std::string> parse_acquire(const nlohmann::json& payload);
/// How many targets are to be online, `{"up": N}`; any integer.
[[nodiscard]] std::int64_t parse_waitup(const nlohmann::json& payload);
/// Targets that are to be offline, `{"ranks": IDSET}`.
[[nodiscard]] IdSet parse_force_down(const nlohmann::json& payload);

/// The request of resource.reload: `{}` for the configuration, or `{"path": FILE, "force": BOOL?, "xml":
/// BOOL?}` for an R. A path that is null is none.
struct ReloadRequest {
  std::optional<std::string> path;
  bool force = false;
  bool xml = false;
};
[[nodiscard]] ReloadRequest parse_reload(const nlohmann::json& payload);

/// The request of a journal consumer: `since` is a time, `targets` an idset or a hostlist.
struct JournalRequest {
  std::optional<double> since;
  std::optional<std::string> targets;
};
[[nodiscard]] JournalRequest parse_journal(const nlohmann::json& payload);

/// The name of the broker attribute that a Flux client asks for: `{"name": STRING}`. EPROTO for a name that
/// is missing or not a string; other keys are ignored, as in Flux.
[[nodiscard]] std::string parse_attr_get(const nlohmann::json& payload);

/// Upper bound of the values in the payload of a hello: one node needs few, and an R of thousands takes
/// milliseconds to read.
inline constexpr std::size_t max_hello_values = 1024;

/// The hello of a node agent: `{"hostname": NAME, "R": OBJECT, "norestrict": BOOL?}`. Error EINVAL
/// too if the R is none, or not of one node.
[[nodiscard]] NodeReport parse_agent(const nlohmann::json& payload);
/// The response to it: `{"rank": N, "interval": SECONDS}`, without a rank until it is known.
[[nodiscard]] std::string encode_agent(const std::optional<IdSet::Id>& rank, double interval);
/// The answer to a report whose `norestrict` is not the configured one: `{"norestrict": BOOL}`, as
/// configured.
[[nodiscard]] std::string encode_agent_wanted(bool norestrict);
/// Which of its agents a connection means by a beat: `{"matchtag": N}`.
[[nodiscard]] std::uint32_t parse_agent_beat(const nlohmann::json& payload);

/// First response to resource.acquire; `resources` is an R as text.
[[nodiscard]] std::string encode_acquired(std::string_view resources, const IdSet& up);
/// Later responses to resource.acquire. The delta is not empty.
[[nodiscard]] std::string encode_delta(const Delta& delta);
/// resource.status. Where the inventory is divided, `partitions` says `{NAME: {"targets", "held",
/// "waiting", "leaving"}}`: waiting are targets that somebody else's holder has still, leaving are those that
/// this partition's holder has still and that belong to it no more.
[[nodiscard]] std::string encode_status(const Module& module, const Acquisition& acquisition);
/// resource.sched-status.
[[nodiscard]] std::string encode_sched_status(const Module& module);
/// resource.get.
[[nodiscard]] std::string encode_inventory(const Module& module);
/// The response to attr.get of `hostlist`: `{"value": HOSTLIST, "flags": 1}`, where 1 means that clients
/// cannot set it. The position of a host in the list is its rank, so targets that left for good keep their
/// positions, and ranks that no R has are named `unknown-RANK`. Throws Error ERANGE if the highest rank is
/// not below Hostlist::max_expansion.
[[nodiscard]] std::string encode_hostlist(const Module& module);

}  // namespace resourced::proto
