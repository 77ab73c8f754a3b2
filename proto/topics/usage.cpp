#include "proto/topics/usage.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto::topics {

using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 5> by_names{"total", "host", "reason", "property", "month"};

constexpr std::array<std::pair<const char*, double Report::Group::*>, 7> time_keys{
    {{"time", &Report::Group::time},
     {"up", &Report::Group::up},
     {"allocated", &Report::Group::allocated},
     {"drained", &Report::Group::drained},
     {"offline", &Report::Group::offline},
     {"excluded", &Report::Group::excluded},
     {"unavailable", &Report::Group::unavailable}}};

void append_mean(std::string& out, std::string_view key, const std::optional<double>& number) {
  if (number) return append_member(out, key, *number);
  append_key(out, key);
  out += "null";
}

void append_group(std::string& out, const Report::Group& group, bool has_name) {
  out += '{';
  if (has_name) append_member(out, "name", group.name);
  if (!group.cause.empty()) append_member(out, "cause", group.cause);
  for (const auto& [key, time] : time_keys) append_member(out, key, group.*time);
  append_member(out, "outages", group.outages);
  append_mean(out, "mtbf", group.mtbf);
  append_mean(out, "mttr", group.mttr);
  append_key(out, "reasons");
  out += '[';
  for (const Report::Reason& reason : group.reasons) {
    if (out.back() != '[') out += ',';
    out += '{';
    append_member(out, "cause", reason.cause);
    if (reason.cause == "drain") append_member(out, "reason", reason.reason);
    append_member(out, "time", reason.time);
    append_member(out, "outages", reason.outages);
    out += '}';
  }
  out += "]}";
}

std::int64_t signed_count(const json& object, std::string_view key) {
  const json& value = required_member(object, key);
  if (!value.is_number_integer()) throw Error(EPROTO, fmt::format("{} must be an integer", key));
  return value.get<std::int64_t>();
}

std::optional<double> required_mean(const json& object, std::string_view key) {
  if (required_member(object, key).is_null()) return std::nullopt;
  return required_number(object, key);
}

Report::Group read_entry(const json& object) {
  Report::Group group;
  group.name = optional_string(object, "name").value_or("");
  group.cause = optional_string(object, "cause").value_or("");
  for (const auto& [key, time] : time_keys) group.*time = required_number(object, key);
  group.outages = signed_count(object, "outages");
  group.mtbf = required_mean(object, "mtbf");
  group.mttr = required_mean(object, "mttr");
  for (const json& reason : required_array(object, "reasons")) {
    group.reasons.push_back({required_string(reason, "cause"), optional_string(reason, "reason").value_or(""),
                             required_number(reason, "time"), signed_count(reason, "outages")});
  }
  return group;
}

}  // namespace

std::string_view report_by_name(ReportBy by) noexcept { return by_names.at(static_cast<std::size_t>(by)); }

std::optional<ReportBy> parse_report_by(std::string_view name) noexcept {
  const auto found = std::ranges::find(by_names, name);
  if (found == by_names.end() || found == by_names.begin()) return std::nullopt;
  return static_cast<ReportBy>(found - by_names.begin());
}

json encode_report_request(const ReportRequest& request) {
  json payload{{"since", to_number(request.since)}};
  if (request.until) payload["until"] = to_number(*request.until);
  if (request.by != ReportBy::total) payload["by"] = report_by_name(request.by);
  if (request.limit != ReportRequest::most_groups) payload["limit"] = request.limit;
  return payload;
}

ReportRequest parse_report_request(const json& payload) {
  ReportRequest request;
  request.since = wall_time(required_number(payload, "since"));
  if (payload.contains("until")) request.until = wall_time(required_number(payload, "until"));
  if (const auto name = optional_string(payload, "by")) {
    const auto by = parse_report_by(*name);
    if (!by) throw Error(EINVAL, "by must be host, reason, property or month");
    request.by = *by;
  }
  if (payload.contains("limit")) {
    const std::int64_t number = signed_count(payload, "limit");
    if (number < 1 || number > std::int64_t{ReportRequest::most_groups})
      throw Error(EINVAL, fmt::format("limit must be from 1 to {}", ReportRequest::most_groups));
    request.limit = static_cast<std::size_t>(number);
  }
  return request;
}

std::string encode_report(const Report& report, ReportBy by) {
  std::string out = "{";
  constexpr std::size_t usual_group = 320;
  out.reserve((report.groups.size() + 2) * usual_group);
  append_member(out, "since", report.since);
  append_member(out, "until", report.until);
  if (report.missing > 0) append_member(out, "missing", report.missing);
  if (report.left_out > 0) append_member(out, "left-out", static_cast<std::int64_t>(report.left_out));
  append_key(out, "total");
  append_group(out, report.total, false);
  if (by != ReportBy::total) {
    append_key(out, "groups");
    out += '[';
    for (const Report::Group& group : report.groups) {
      if (out.back() != '[') out += ',';
      append_group(out, group, true);
    }
    out += ']';
  }
  return out += '}';
}

Report parse_report(const json& payload) {
  Report report;
  report.since = wall_time(required_number(payload, "since"));
  report.until = wall_time(required_number(payload, "until"));
  if (payload.contains("missing")) report.missing = required_number(payload, "missing");
  if (payload.contains("left-out"))
    report.left_out = static_cast<std::size_t>(std::max<std::int64_t>(0, signed_count(payload, "left-out")));
  report.total = read_entry(required_member(payload, "total"));
  if (!payload.contains("groups")) return report;
  for (const json& group : required_array(payload, "groups")) report.groups.push_back(read_entry(group));
  return report;
}

}  // namespace resourced::proto::topics
