// The states of a snapshot of the log as one line of JSON, for the store. The inventory is not in it:
// `{"online": IDSET, "torpid": IDSET, "exclude": IDSET, "drains": [{"targets": IDSET, "timestamp": T,
// "reason": STRING?, "by": ACTOR?, "until": T?}], "scheduled": [as drains; the timestamp is the beginning],
// "allocations": {ID: IDSET}, "shrunk": HOSTLIST, "brokers": BOOL}`.
#pragma once

#include <string>
#include <string_view>

#include "core/module/snapshot.hpp"

namespace resourced::proto {

[[nodiscard]] std::string encode_snapshot(const module::Snapshot& snapshot);

/// Without an inventory. Throws Error EINVAL or EPROTO for any other text.
[[nodiscard]] module::Snapshot parse_snapshot(std::string_view text);

}  // namespace resourced::proto
