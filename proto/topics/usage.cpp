#include "proto/topics/usage.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"
#include "proto/usage_json.hpp"

namespace resourced::proto::topics {

using module::NodeTime;
using module::Usage;
using module::UsageGroup;
using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 5> by_names{"total", "host", "reason", "property", "month"};

constexpr std::array<std::pair<const char*, NodeTime Usage::*>, 7> usage_keys{
    {{"time", &Usage::known},
     {"up", &Usage::up},
     {"allocated", &Usage::allocated},
     {"drained", &Usage::drained},
     {"offline", &Usage::offline},
     {"excluded", &Usage::excluded},
     {"unavailable", &Usage::unavailable}}};

constexpr std::array<std::pair<const char*, double Report::Group::*>, 7> group_keys{
    {{"time", &Report::Group::time},
     {"up", &Report::Group::up},
     {"allocated", &Report::Group::allocated},
     {"drained", &Report::Group::drained},
     {"offline", &Report::Group::offline},
     {"excluded", &Report::Group::excluded},
     {"unavailable", &Report::Group::unavailable}}};

void append_seconds(std::string& out, std::string_view key, NodeTime time) {
  append_key(out, key);
  append_number(out, module::to_seconds(time));
}

void append_mean(std::string& out, std::string_view key, NodeTime time, std::int64_t number) {
  append_key(out, key);
  if (number > 0) {
    append_number(out, module::to_seconds(time) / static_cast<double>(number));
  } else {
    out += "null";
  }
}

void append_count(std::string& out, std::string_view key, std::int64_t number) {
  append_key(out, key);
  append_integer(out, number);
}

// Appends the reasons with the most time.
void append_reasons(std::string& out, const UsageGroup& group) {
  std::vector<std::pair<const module::Cause*, const Usage*>> causes;
  for (const auto& [cause, usage] : group.causes) causes.emplace_back(&cause, &usage);
  std::ranges::stable_sort(causes, std::greater(), [](const auto& entry) { return entry.second->known; });
  causes.resize(std::min(causes.size(), Report::most_reasons));
  append_key(out, "reasons");
  out += '[';
  for (const auto& [cause, usage] : causes) {
    if (out.back() != '[') out += ',';
    out += '{';
    append_key(out, "cause");
    append_string(out, cause_name(cause->kind));
    if (cause->kind == module::Cause::Kind::drain) {
      append_key(out, "reason");
      append_string(out, cause->reason);
    }
    append_seconds(out, "time", usage->known);
    append_count(out, "outages", usage->outages);
    out += '}';
  }
  out += ']';
}

// A group of the answer; entries are sorted in the order of the answer.
struct GroupEntry {
  std::string name;
  const module::Cause* cause = nullptr;
  const Usage* usage = nullptr;
  const UsageGroup* group = nullptr;
};

// Appends a group; `up` is the time without failures, by which the mean time between them is computed.
void append_entry(std::string& out, const GroupEntry& entry, bool has_name, NodeTime up) {
  out += '{';
  if (has_name) {
    append_key(out, "name");
    append_string(out, entry.name);
  }
  if (entry.cause != nullptr) {
    append_key(out, "cause");
    append_string(out, cause_name(entry.cause->kind));
  }
  for (const auto& [key, time] : usage_keys) append_seconds(out, key, entry.usage->*time);
  append_count(out, "outages", entry.usage->outages);
  append_mean(out, "mtbf", up, entry.usage->outages);
  append_mean(out, "mttr", entry.usage->unavailable, entry.usage->outages);
  if (entry.group != nullptr) {
    append_reasons(out, *entry.group);
  } else {
    append_key(out, "reasons");
    out += "[]";
  }
  out += '}';
}

std::vector<GroupEntry> entries_of(const std::map<std::string, UsageGroup>& groups) {
  std::vector<GroupEntry> entries;
  entries.reserve(groups.size());
  for (const auto& [name, group] : groups) entries.push_back({name, nullptr, &group.all, &group});
  return entries;
}

std::vector<GroupEntry> entries_of(const UsageGroup& total) {
  std::vector<GroupEntry> entries;
  for (const auto& [cause, usage] : total.causes) {
    const std::string name =
        cause.kind == module::Cause::Kind::drain ? cause.reason : std::string(cause_name(cause.kind));
    entries.push_back({name, &cause, &usage, nullptr});
  }
  return entries;
}

std::vector<GroupEntry> entries_of(const std::map<module::Month, module::UsageTable>& tables) {
  std::vector<GroupEntry> entries;
  for (const auto& [month, table] : tables) {
    if (table.all.all.known == 0) continue;
    entries.push_back({module::month_name(month), nullptr, &table.all.all, &table.all});
  }
  return entries;
}

WallTime report_time(const json& value, std::string_view key) {
  if (!value.is_number()) throw Error(EPROTO, fmt::format("{} must be a number", key));
  return wall_time(value.get<double>());
}

double required_seconds(const json& object, std::string_view key) {
  const json& value = required_member(object, key);
  if (!value.is_number()) throw Error(EPROTO, fmt::format("{} must be a number", key));
  return value.get<double>();
}

std::int64_t signed_count(const json& object, std::string_view key) {
  const json& value = required_member(object, key);
  if (!value.is_number_integer()) throw Error(EPROTO, fmt::format("{} must be an integer", key));
  return value.get<std::int64_t>();
}

std::optional<double> required_mean(const json& object, std::string_view key) {
  if (required_member(object, key).is_null()) return std::nullopt;
  return required_seconds(object, key);
}

const json& required_list(const json& object, std::string_view key) {
  const json& value = required_member(object, key);
  if (!value.is_array()) throw Error(EPROTO, fmt::format("{} must be an array", key));
  return value;
}

Report::Group read_entry(const json& object) {
  Report::Group group;
  group.name = optional_string(object, "name").value_or("");
  group.cause = optional_string(object, "cause").value_or("");
  for (const auto& [key, time] : group_keys) group.*time = required_seconds(object, key);
  group.outages = signed_count(object, "outages");
  group.mtbf = required_mean(object, "mtbf");
  group.mttr = required_mean(object, "mttr");
  for (const json& reason : required_list(object, "reasons")) {
    group.reasons.push_back({required_string(reason, "cause"), optional_string(reason, "reason").value_or(""),
                             required_seconds(reason, "time"), signed_count(reason, "outages")});
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
  request.since = report_time(required_member(payload, "since"), "since");
  if (const auto until = payload.find("until"); until != payload.end())
    request.until = report_time(*until, "until");
  if (const auto name = optional_string(payload, "by")) {
    const auto by = parse_report_by(*name);
    if (!by) throw Error(EINVAL, "by must be host, reason, property or month");
    request.by = *by;
  }
  if (const auto limit = payload.find("limit"); limit != payload.end()) {
    if (!limit->is_number_integer()) throw Error(EPROTO, "limit must be an integer");
    const auto number = limit->get<std::int64_t>();
    if (number < 1 || number > std::int64_t{ReportRequest::most_groups})
      throw Error(EINVAL, fmt::format("limit must be from 1 to {}", ReportRequest::most_groups));
    request.limit = static_cast<std::size_t>(number);
  }
  return request;
}

std::string encode_report(const module::UsageReport& report, const ReportRequest& request) {
  module::UsageTable sums;
  const module::UsageTable* all = &sums;
  if (report.tables.size() == 1) {
    all = &report.tables.begin()->second;
  } else {
    for (const auto& [month, table] : report.tables) sums += table;
  }
  std::vector<GroupEntry> entries;
  if (request.by == ReportBy::host) entries = entries_of(all->hosts);
  if (request.by == ReportBy::reason) entries = entries_of(all->all);
  if (request.by == ReportBy::property) entries = entries_of(all->properties);
  if (request.by == ReportBy::month) entries = entries_of(report.tables);
  if (request.by == ReportBy::host || request.by == ReportBy::reason) {
    std::ranges::stable_sort(entries, std::greater(),
                             [](const GroupEntry& entry) { return entry.usage->unavailable; });
  }
  const std::size_t count = std::min(entries.size(), request.limit);
  std::string out = "{";
  constexpr std::size_t usual_entry = 320;
  out.reserve((count + 2) * usual_entry);
  append_key(out, "since");
  append_number(out, to_number(report.from));
  append_key(out, "until");
  append_number(out, to_number(report.until));
  if (all->missing > 0) append_seconds(out, "missing", all->missing);
  if (entries.size() > count)
    append_count(out, "left-out", static_cast<std::int64_t>(entries.size() - count));
  const NodeTime up = all->all.all.up;
  append_key(out, "total");
  append_entry(out, {{}, nullptr, &all->all.all, &all->all}, false, up);
  if (request.by != ReportBy::total) {
    append_key(out, "groups");
    out += '[';
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out += ',';
      append_entry(out, entries[i], true, request.by == ReportBy::reason ? up : entries[i].usage->up);
    }
    out += ']';
  }
  return out += '}';
}

Report parse_report(const json& payload) {
  Report report;
  report.since = wall_time(required_seconds(payload, "since"));
  report.until = wall_time(required_seconds(payload, "until"));
  if (payload.contains("missing")) report.missing = required_seconds(payload, "missing");
  if (payload.contains("left-out"))
    report.left_out = static_cast<std::size_t>(std::max<std::int64_t>(0, signed_count(payload, "left-out")));
  report.total = read_entry(required_member(payload, "total"));
  if (!payload.contains("groups")) return report;
  for (const json& group : required_list(payload, "groups")) report.groups.push_back(read_entry(group));
  return report;
}

}  // namespace resourced::proto::topics
