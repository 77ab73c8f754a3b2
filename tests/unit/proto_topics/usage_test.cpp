// resource.report: requests and answers, encoded and read again.
#include "proto/topics/usage.hpp"

#include <cerrno>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace resourced::proto::topics {
namespace {

using nlohmann::json;

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

TEST_CASE("a report is read as it was written") {
  Report report{wall_time(10), wall_time(20), 3, 1, {}, {}};
  report.total = {"", "", 10, 4, 5, 5, 1, 0, 6, 4, 1, 1.5, {{"drain", "", 2, 2}, {"offline", "", 1, 1}}};
  report.groups = {{"a", "", 10, 9, 0, 0, 0, 0, 1, 0, {}, {}, {}}};
  CHECK(encode_report(report, ReportBy::host) ==
        R"({"since":10.0,"until":20.0,"missing":3.0,"left-out":1,"total":{"time":10.0,"up":4.0,)"
        R"("allocated":5.0,"drained":5.0,"offline":1.0,"excluded":0.0,"unavailable":6.0,"outages":4,)"
        R"("mtbf":1.0,"mttr":1.5,"reasons":[{"cause":"drain","reason":"","time":2.0,"outages":2},)"
        R"({"cause":"offline","time":1.0,"outages":1}]},"groups":[{"name":"a","time":10.0,"up":9.0,)"
        R"("allocated":0.0,"drained":0.0,"offline":0.0,"excluded":0.0,"unavailable":1.0,"outages":0,)"
        R"("mtbf":null,"mttr":null,"reasons":[]}]})");
  const auto read = [&](ReportBy by) { return parse_report(json::parse(encode_report(report, by))); };
  const Report found = read(ReportBy::host);
  CHECK(found.since == wall_time(10));
  CHECK(found.until == wall_time(20));
  CHECK(found.missing == 3);
  CHECK(found.left_out == 1);
  CHECK(found.total.mttr == 1.5);
  CHECK(found.total.reasons.size() == 2);
  REQUIRE(found.groups.size() == 1);
  CHECK(found.groups[0].name == "a");
  CHECK_FALSE(found.groups[0].mtbf);
  // A group by reasons names its cause; a report without groups has no key for them.
  report.groups[0].cause = "drain";
  CHECK(read(ReportBy::reason).groups[0].cause == "drain");
  CHECK_FALSE(json::parse(encode_report(report, ReportBy::total)).contains("groups"));
}

}  // namespace
}  // namespace resourced::proto::topics
