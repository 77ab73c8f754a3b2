// Payloads of resource.report: the time that targets were up, allocated, drained and offline, their outages
// and the reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/time.hpp"

namespace resourced::proto::topics {

/// The grouping of a report.
enum class ReportBy { total, host, reason, property, month };
/// Returns the name of a grouping: `host`, ...; `total` has no name of its own in a request.
[[nodiscard]] std::string_view report_by_name(ReportBy by) noexcept;
/// Reads the name of a grouping; returns nothing for any text except host, reason, property and month.
[[nodiscard]] std::optional<ReportBy> parse_report_by(std::string_view name) noexcept;

/// The request `{"since": T, "until": T?, "by": STRING?, "limit": N?}`. The report ends now without `until`,
/// and covers only all targets together without `by`.
struct ReportRequest {
  /// Maximum number of groups of an answer, and the default of `limit`.
  static constexpr std::size_t most_groups = 65536;

  WallTime since{};
  std::optional<WallTime> until = std::nullopt;
  ReportBy by = ReportBy::total;
  std::size_t limit = most_groups;
};
[[nodiscard]] nlohmann::json encode_report_request(const ReportRequest& request);
/// Reads the request. Throws Error EPROTO for a key that is missing or has another type, EINVAL for another
/// value.
[[nodiscard]] ReportRequest parse_report_request(const nlohmann::json& payload);

/// The answer. Times are seconds.
struct Report {
  static constexpr std::size_t most_reasons = 5;

  struct Reason {
    std::string cause;
    std::string reason;
    double time = 0;
    std::int64_t outages = 0;
  };
  struct Group {
    std::string name = {};
    std::string cause = {};
    double time = 0;
    double up = 0;
    double allocated = 0;
    double drained = 0;
    double offline = 0;
    double excluded = 0;
    double unavailable = 0;
    std::int64_t outages = 0;
    std::optional<double> mtbf = {};
    std::optional<double> mttr = {};
    std::vector<Reason> reasons = {};
  };
  WallTime since{};
  WallTime until{};
  double missing = 0;
  std::size_t left_out = 0;
  Group total;
  std::vector<Group> groups;
};
/// Encodes the answer, `{"since": T, "until": T, "missing": S?, "left-out": N?, "total": GROUP, "groups":
/// [GROUP, ...]?}` with `groups` where the request has `by`. `since` and `until` are the times that were
/// counted, `missing` is the part of that time that is not known. S are seconds. GROUP is `{"name": STRING?,
/// "cause": CAUSE?, "time": S, "up": S, "allocated": S, "drained": S, "offline": S, "excluded": S,
/// "unavailable": S, "outages": N, "mtbf": S|null, "mttr": S|null, "reasons": [{"cause": CAUSE, "reason":
/// STRING?, "time": S, "outages": N}, ...]}`, with at most most_reasons reasons, the longest first. The total
/// has no name. CAUSE is `drain`, `offline`, `torpid` or `other`: of a group by reasons, whose name is the
/// reason, or the cause if that is not a drain. Groups by host and by reason are ordered by unavailable time,
/// the longest first, the others by name; those after the limit are left out.
[[nodiscard]] std::string encode_report(const Report& report, ReportBy by);
/// Reads the answer. Throws Error EPROTO that names the key which is missing or wrong.
[[nodiscard]] Report parse_report(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
