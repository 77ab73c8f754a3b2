// The present and earlier states according to the log alone: resource.status-at, and reads of the present
// state whose answer must not be later than the log, on a standby of a cluster, and on a leader whose commits
// are not confirmed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/module/state.hpp"
#include "core/time.hpp"

namespace resourced::proto::topics {

/// Returns the answer to resource.status-at, the status at a time: `{"at": T}` and the keys of
/// resource.status up to `allocated`, with `shrunk` and `scheduled`. The log contains neither the partitions
/// nor the checks of earlier times.
[[nodiscard]] std::string encode_status_at(const module::State& state, WallTime at);

/// A read of the present state.
enum class LogRead : std::uint8_t { status, sched_status, inventory, hostlist };
inline constexpr std::size_t log_reads = 4;

/// Returns the answer to a read after an event. Except for attr.get it has `{"sequence": N}`, that event, and
/// - resource.status: the other keys of encode_status_at();
/// - resource.sched-status: the keys of encode_sched_status(). `allocated` has targets with an allocation,
///   with all their cores and gpus, as only the ledger of the leader has the parts; `reported` is empty, as
///   only the leader knows the schedulers;
/// - resource.get: `R`, without a method;
/// - attr.get of `hostlist`: the keys of encode_hostlist(), where targets that left for good have no name.
[[nodiscard]] std::string encode_log_read(LogRead read, const module::State& state, std::uint64_t sequence);

}  // namespace resourced::proto::topics
