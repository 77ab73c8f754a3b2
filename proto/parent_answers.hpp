// Responses of an enclosing instance to the one that follows it: batches of `resource.journal` (RFC 44) and
// `resource.status`. Decodes the output of daemon/journal and proto/payloads; core/module/parent.hpp takes
// the result.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/module/event.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::proto {

struct JournalBatch {
  /// In their order. A definition has the R that came beside the events, or none.
  std::vector<Event> events;
  /// No event at all, known or not: the history is through.
  bool sentinel = false;
  /// Some of the history is not kept any more.
  bool truncated = false;
  /// Events that cannot be read are passed over: how many, and what is wrong with the first.
  std::size_t unreadable = 0;
  std::string defect;
};

/// Throws Error EPROTO for anything but `{"events": [...], "R": OBJECT?}`.
[[nodiscard]] JournalBatch parse_journal_batch(const nlohmann::json& payload);

/// In ranks of `inventory`.
struct ParentStatus {
  ResourceSet inventory;
  IdSet drained;
  IdSet offline;
  IdSet torpid;
};

/// Throws Error that names the key which is missing or wrong.
[[nodiscard]] ParentStatus parse_parent_status(const nlohmann::json& payload);

}  // namespace resourced::proto
