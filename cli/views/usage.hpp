// Reports of the times of nodes by state, as tables and as CSV. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cli/views/listing.hpp"
#include "core/time.hpp"
#include "proto/topics/usage.hpp"

namespace resourced::cli::views {

/// Returns a row for each group, or for all targets together if the report has no groups. The times are
/// node-time. `cause`, `time`, `excluded`, `unavailable`, `since` and `until` are not in the standard table.
/// JSON has seconds, and null for a missing value.
[[nodiscard]] Listing report_view(const proto::topics::Report& report, proto::topics::ReportBy by);
[[nodiscard]] Listing report_columns(proto::topics::ReportBy by);

/// Returns all columns except the reasons, in seconds, with a line of names, quotes as in RFC 4180, and an
/// empty field for a missing value.
[[nodiscard]] std::string report_csv(const proto::topics::Report& report, proto::topics::ReportBy by,
                                     bool has_header);

/// Returns a length of time in its two largest units: `3d4h`, `2h30m`, `5m12s`, `12s`, and below ten seconds
/// `0.250s`.
[[nodiscard]] std::string format_length(Seconds length);

}  // namespace resourced::cli::views
