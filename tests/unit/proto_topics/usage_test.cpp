// resource.report: requests and answers, encoded and read again.
#include "proto/topics/usage.hpp"

#include <cerrno>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/usage_json.hpp"

namespace resourced::proto::topics {
namespace {

using module::Cause;
using module::Usage;
using module::UsageReport;
using module::UsageTable;
using nlohmann::json;

constexpr module::Micros second = 1'000'000;

// Ten hours of node-time: four up, three drained for a fan, two for no given reason, one offline.
UsageTable ten_hours() {
  UsageTable table;
  const auto hours = [](int number) { return module::NodeTime{number} * 3600 * second; };
  table.all.all = {hours(10), hours(4), hours(5), hours(5), hours(1), 0, hours(6), 4};
  table.all.causes[{Cause::Kind::drain, "fan"}] = {hours(3), 0, 0, hours(3), 0, 0, hours(3), 1};
  table.all.causes[{Cause::Kind::drain, ""}] = {hours(2), 0, 0, hours(2), 0, 0, hours(2), 2};
  table.all.causes[{Cause::Kind::offline}] = {hours(1), 0, 0, 0, hours(1), 0, hours(1), 1};
  return table;
}

Report answer(const UsageReport& report, const ReportRequest& request) {
  return parse_report(json::parse(encode_report(report, request)));
}

TEST_CASE("a request for a report is read as it was written") {
  ReportRequest request{wall_time(1.5), wall_time(2.5), ReportBy::property, 7};
  const ReportRequest read = parse_report_request(encode_report_request(request));
  CHECK(read.since == request.since);
  CHECK(read.until == request.until);
  CHECK(read.by == request.by);
  CHECK(read.limit == 7);
  const ReportRequest least = parse_report_request(encode_report_request({wall_time(1)}));
  CHECK_FALSE(least.until);
  CHECK(least.by == ReportBy::total);
  CHECK(least.limit == ReportRequest::most_groups);
  const auto refusal = [](const json& payload) {
    try {
      (void)parse_report_request(payload);
    } catch (const Error& error) {
      return error.errnum();
    }
    return 0;
  };
  CHECK(refusal(json::object()) == EPROTO);
  CHECK(refusal({{"since", 1}, {"until", "x"}}) == EPROTO);
  CHECK(refusal({{"since", 1}, {"by", 1}}) == EPROTO);
  CHECK(refusal({{"since", 1}, {"by", "total"}}) == EINVAL);
  CHECK(refusal({{"since", 1}, {"limit", 65537}}) == EINVAL);
  CHECK(refusal({{"since", 1}, {"limit", -1}}) == EINVAL);
}

TEST_CASE("MTBF and MTTR are times by outages, and reasons come with the longest first") {
  UsageReport report{wall_time(10), wall_time(20), {{0, ten_hours()}}};
  report.tables[0].missing = 3 * second;
  const Report found = answer(report, {});
  CHECK(found.since == wall_time(10));
  CHECK(found.until == wall_time(20));
  CHECK(found.missing == 3);
  CHECK(found.total.up == 4 * 3600);
  CHECK(found.total.mtbf == 3600);
  CHECK(found.total.mttr == 1.5 * 3600);
  REQUIRE(found.total.reasons.size() == 3);
  CHECK(found.total.reasons[0].reason == "fan");
  CHECK(found.total.reasons[2].cause == "offline");
  CHECK(found.groups.empty());

  ReportRequest by_reason;
  by_reason.by = ReportBy::reason;
  const Report reasons = answer(report, by_reason);
  REQUIRE(reasons.groups.size() == 3);
  CHECK(reasons.groups[0].name == "fan");
  CHECK(reasons.groups[1].cause == "drain");
  CHECK(reasons.groups[1].name.empty());
  CHECK(reasons.groups[2].name == "offline");
  // MTBF is the time that all were up, divided by the outages of this reason.
  CHECK(reasons.groups[1].mtbf == 2 * 3600);
  CHECK(reasons.groups[1].mttr == 3600);
}

TEST_CASE("months add up, and hosts come with the longest unavailable first") {
  UsageReport report{
      wall_time(10), wall_time(20), {{12 * 2026 + 9, ten_hours()}, {12 * 2026 + 10, ten_hours()}}};
  ReportRequest by_month;
  by_month.by = ReportBy::month;
  const Report months = answer(report, by_month);
  CHECK(months.total.time == 20 * 3600);
  CHECK(months.total.outages == 8);
  REQUIRE(months.groups.size() == 2);
  CHECK(months.groups[0].name == "2026-10");
  CHECK(months.groups[1].name == "2026-11");

  UsageReport hosts{wall_time(10), wall_time(20), {{0, {}}}};
  hosts.tables[0].hosts["a"].all = {10 * second, 9 * second, 0, 0, 0, 0, 1 * second, 0};
  hosts.tables[0].hosts["b"].all = {10 * second, 8 * second, 0, 0, 0, 0, 2 * second, 0};
  ReportRequest by_host;
  by_host.by = ReportBy::host;
  by_host.limit = 1;
  const Report worst = answer(hosts, by_host);
  CHECK(worst.left_out == 1);
  REQUIRE(worst.groups.size() == 1);
  CHECK(worst.groups[0].name == "b");
  CHECK_FALSE(worst.groups[0].mtbf);
  CHECK_FALSE(worst.groups[0].mttr);
}

TEST_CASE("sums are stored as they are, and other texts are refused") {
  UsageTable table = ten_hours();
  table.hosts["n \"0\""] = table.all;
  table.properties["big"] = table.all;
  table.missing = 5;
  table.all.causes[{Cause::Kind::other}].known = 1;
  const std::string text = encode_usage_table(table);
  CHECK(parse_usage_table(text) == table);
  CHECK(encode_usage_table(parse_usage_table(text)) == text);
  for (const char* other :
       {"", "[]", "{}", R"({"all":[1],"hosts":{},"properties":{},"missing":0})",
        R"({"all":[1,2,3,4,5,6,7,"8"],"hosts":{},"properties":{},"missing":0})",
        R"({"all":[1,2,3,4,5,6,7,8,["x","",1,2,3,4,5,6,7,8]],"hosts":{},"properties":{},"missing":0})",
        R"({"all":[1,2,3,4,5,6,7,8,["drain",""]],"hosts":{},"properties":{},"missing":0})",
        R"({"all":[1,2,3,4,5,6,7,8],"hosts":[],"properties":{},"missing":0})",
        R"({"all":[1,2,3,4,5,6,7,8],"hosts":{},"properties":{},"missing":"no"})"}) {
    CAPTURE(other);
    CHECK_THROWS_AS((void)parse_usage_table(other), Error);
  }
}

}  // namespace
}  // namespace resourced::proto::topics
