// The table of resourcectl drain --scheduled: drains that begin or end by themselves.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/views/listing.hpp"
#include "cli/views/views.hpp"

namespace resourced::cli::views {

/// Returns one row for each scheduled drain of a resource.status payload, and for each present drain with an
/// end, by its beginning. The columns `user` and `by` are those of drain_view().
[[nodiscard]] Listing schedule_view(const nlohmann::json& status, const ViewFilter& filter,
                                    const UserName& user_name = {});
[[nodiscard]] Listing schedule_columns();

}  // namespace resourced::cli::views
