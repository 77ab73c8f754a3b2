// Sums of times in a table: what reports and roll-ups make of them.
#include "daemon/log/usage_sums.hpp"

#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace resourced::daemon::log {
namespace {

using proto::topics::Report;
using proto::topics::ReportBy;

constexpr module::Month october = 12 * 2026 + 9;

// Ten hours of node-time: four up, three drained for a fan, two for no given reason, one offline.
std::string ten_hours() {
  const auto row = [](std::string_view cause, std::string_view reason, std::string_view hours, int outages) {
    std::string text = fmt::format(R"(["total","","{}","{}")", cause, reason);
    for (const char digit : hours) text += fmt::format(",{}", (digit - '0') * 3'600'000'000LL);
    return text + fmt::format(",{}]", outages);
  };
  return fmt::format("[{},{},{},{}]", row("", "", "4450000", 0), row("drain", "", "2002002", 2),
                     row("drain", "fan", "3003003", 1), row("offline", "", "1000101", 1));
}

TEST_CASE("MTBF and MTTR are times by outages, and reasons come with the longest first") {
  UsageSums sums(ReportBy::total);
  sums.add(october, ten_hours());
  sums.add_missing(october, 3'000'000);
  const Report found = sums.report();
  CHECK(found.missing == 3);
  CHECK(found.total.time == 10 * 3600);
  CHECK(found.total.up == 4 * 3600);
  CHECK(found.total.mtbf == 3600);
  CHECK(found.total.mttr == 1.5 * 3600);
  REQUIRE(found.total.reasons.size() == 3);
  CHECK(found.total.reasons[0].reason == "fan");
  CHECK(found.total.reasons[2].cause == "offline");
  CHECK(found.groups.empty());

  UsageSums by_reasons(ReportBy::reason);
  by_reasons.add(october, ten_hours());
  const Report reasons = by_reasons.report();
  REQUIRE(reasons.groups.size() == 3);
  CHECK(reasons.groups[0].name == "fan");
  CHECK(reasons.groups[1].cause == "drain");
  CHECK(reasons.groups[1].name.empty());
  CHECK(reasons.groups[1].reasons.empty());
  CHECK(reasons.groups[2].name == "offline");
  // MTBF is the time that all were up, divided by the outages of this reason.
  CHECK(reasons.groups[1].mtbf == 2 * 3600);
  CHECK(reasons.groups[1].mttr == 3600);
}

TEST_CASE("months add up, and hosts come with the longest unavailable first") {
  UsageSums by_months(ReportBy::month);
  by_months.add(october, ten_hours());
  by_months.add(october + 1, ten_hours());
  by_months.add_missing(october, 1'000'000);
  by_months.add_missing(october + 1, 2'000'000);
  const Report months = by_months.report();
  CHECK(months.missing == 3);
  CHECK(months.total.time == 20 * 3600);
  CHECK(months.total.outages == 8);
  CHECK(months.total.reasons.size() == 3);
  REQUIRE(months.groups.size() == 2);
  CHECK(months.groups[0].name == "2026-10");
  CHECK(months.groups[0].time == 10 * 3600);
  CHECK(months.groups[1].name == "2026-11");
  CHECK(months.groups[1].reasons.size() == 3);

  UsageSums hosts(ReportBy::host);
  hosts.add(october, R"([["host","a","","",10,9,0,0,0,0,1,0],["host","b","","",10,8,0,0,0,0,2,0]])");
  const Report worst = hosts.report(1);
  CHECK(worst.left_out == 1);
  REQUIRE(worst.groups.size() == 1);
  CHECK(worst.groups[0].name == "b");
  CHECK_FALSE(worst.groups[0].mtbf);
  CHECK_FALSE(worst.groups[0].mttr);
}

TEST_CASE("the sums of a month are kept as text, and added to those of another part of the month") {
  UsageSums first(std::nullopt);
  first.add(october, ten_hours());
  first.add(october, R"([["host","n \"0\"","drain","a \\ \u00e9",1,0,0,1,0,0,1,1]])");
  first.add_missing(october, 5);
  const std::string text = first.month_text(october);
  UsageSums second(std::nullopt);
  second.add(october, text);
  CHECK(second.month_text(october) == text);
  second.add(october, text);
  CHECK(second.months() == std::vector{october});
  UsageSums hosts(ReportBy::host);
  hosts.add(october, second.month_text(october));
  const Report both = hosts.report();
  CHECK(both.total.outages == 8);
  CHECK(both.missing == 10e-6);
  REQUIRE(both.groups.size() == 1);
  CHECK(both.groups[0].name == "n \"0\"");
  CHECK(both.groups[0].reasons.at(0).reason == "a \\ \xc3\xa9");
  CHECK(both.groups[0].outages == 2);
}

TEST_CASE("of many reasons those with the most time are told apart, fewer of a host than of all") {
  UsageSums sums(std::nullopt);
  constexpr int number = 2000;
  std::string rows;
  for (int i = 1; i <= number; ++i) {
    for (const char* group : {R"("total","")", R"("host","a")"})
      rows += fmt::format(R"({}[{},"drain","reason {}",{},0,0,{},0,0,{},1])", rows.empty() ? '[' : ',', group,
                          i, i, i, i);
  }
  sums.add(october, rows + "]");
  // The text of a month has no more reasons than a report.
  const auto report = [&](ReportBy by) {
    UsageSums kept(by);
    kept.add(october, sums.month_text(october));
    return kept.report();
  };
  const Report reasons = report(ReportBy::reason);
  CHECK(reasons.groups.size() == 1001);
  CHECK(reasons.groups[0].cause == "other");
  CHECK(reasons.groups[0].outages == number - 1000);
  CHECK(reasons.groups[1].name == fmt::format("reason {}", number));
  CHECK(reasons.total.outages == number);
  const Report hosts = report(ReportBy::host);
  REQUIRE(hosts.groups.size() == 1);
  CHECK(hosts.groups[0].outages == number);
  CHECK(hosts.groups[0].reasons[0].cause == "other");
  CHECK(hosts.groups[0].reasons[0].outages == number - 16);
}

TEST_CASE("sums beyond 64 bits are not exact, and no error") {
  UsageSums sums(ReportBy::total);
  for (module::Month month = 0; month < 3; ++month)
    sums.add(month, R"([["total","","","",9000000000000000000,0,0,0,0,0,0,0]])");
  CHECK(sums.report().total.time == 27e12);
}

}  // namespace
}  // namespace resourced::daemon::log
