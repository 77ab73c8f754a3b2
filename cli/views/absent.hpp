// The table of resourcectl list --absent: what the daemon keeps for hosts that the inventory lacks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"

namespace resourced::cli::views {

/// Returns a row for each drain, scheduled drain and property under `absent` of a resource.status payload,
/// and for each of these `allocations` (resource.allocations) that has absent hosts. The column `state` is
/// `drained`, `scheduled`, `property-add`, `property-remove` or `allocated`; `timestamp` is the beginning of
/// a drain, `name` that of a property, or that of an allocation. JSON has null where there is none. The
/// columns `user` and `by` are those of drain_view().
[[nodiscard]] Listing absent_view(const nlohmann::json& status, const nlohmann::json& allocations,
                                  const UserName& user_name = {});
[[nodiscard]] Listing absent_columns();

}  // namespace resourced::cli::views
