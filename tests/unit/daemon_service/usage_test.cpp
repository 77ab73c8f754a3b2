// resource.report against an integral over the answers of resource.status: exact, before and after the log is
// trimmed.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "daemon/log/usage_rows.hpp"
#include "daemon/service/past_topics.hpp"
#include "past_history.hpp"
#include "thorough.hpp"

namespace resourced::daemon::test {

using text::IdSet;

namespace {

constexpr std::array<const char*, 7> time_keys{"time",    "up",       "allocated",  "drained",
                                               "offline", "excluded", "unavailable"};

std::int64_t micros(double seconds) { return std::llround(seconds * 1e6); }

// Microseconds in the order of time_keys, then the outages
using Sums = std::array<std::int64_t, 8>;

Sums sums_of(const json& group) {
  Sums sums{};
  for (std::size_t i = 0; i < time_keys.size(); ++i)
    sums.at(i) = micros(group.at(time_keys.at(i)).get<double>());
  sums[7] = group.at("outages").get<std::int64_t>();
  return sums;
}

std::string text_of(const Sums& sums) { return fmt::format("{}", fmt::join(sums, " ")); }

std::tm calendar(std::int64_t time) {
  const std::time_t seconds = time / 1'000'000;
  std::tm date{};
  gmtime_r(&seconds, &date);
  return date;
}

std::int64_t next_month(std::int64_t time) {
  std::tm first{};
  first.tm_year = calendar(time).tm_year;
  first.tm_mon = calendar(time).tm_mon + 1;
  first.tm_mday = 1;
  return std::int64_t{timegm(&first)} * 1'000'000;
}

std::int64_t this_month(std::int64_t time) {
  std::tm first{};
  first.tm_year = calendar(time).tm_year;
  first.tm_mon = calendar(time).tm_mon;
  first.tm_mday = 1;
  return std::int64_t{timegm(&first)} * 1'000'000;
}

std::string name_of_month(std::int64_t time) {
  return fmt::format("{:04}-{:02}", calendar(time).tm_year + 1900, calendar(time).tm_mon + 1);
}

// A target at one time, from the answer of resource.status.
struct Seen {
  std::string host;
  std::set<std::string> properties;
  // The states in the order of time_keys
  std::array<bool, 7> is{};
  std::string cause;
  std::string reason;
  [[nodiscard]] bool up() const { return is[1]; }
  [[nodiscard]] bool unavailable() const { return is[6]; }
};

std::map<IdSet::Id, Seen> look(const json& status) {
  const auto inventory = rset::ResourceSet::from_json(status["R"]);
  const auto set = [&](const char* key) { return IdSet::parse(status[key].get<std::string>()); };
  const IdSet online = set("online");
  const IdSet torpid = set("torpid");
  const IdSet exclude = set("exclude");
  const IdSet allocated = set("allocated");
  std::map<IdSet::Id, std::string> drains;
  for (const auto& drain : status["drain"].items())
    IdSet::parse(drain.key()).for_each([&](IdSet::Id rank) { drains[rank] = drain.value()["reason"]; });
  std::map<IdSet::Id, Seen> seen;
  inventory.ranks().for_each([&](IdSet::Id rank) {
    Seen& target = seen[rank];
    target.host = inventory.host(rank);
    for (const auto& [name, ranks] : inventory.properties())
      if (ranks.contains(rank)) target.properties.insert(name);
    const bool is_drained = drains.contains(rank);
    const bool is_offline = !online.contains(rank);
    const bool is_down = is_drained || is_offline || torpid.contains(rank);
    const bool is_excluded = exclude.contains(rank);
    target.is = {true,        !is_down && !is_excluded, allocated.contains(rank), is_drained, is_offline,
                 is_excluded, is_down && !is_excluded};
    if (!target.unavailable()) return;
    target.cause = is_drained ? "drain" : is_offline ? "offline" : "torpid";
    if (is_drained) target.reason = drains[rank];
  });
  return seen;
}

struct Expected {
  Sums total{};
  std::map<std::string, Sums> groups;
};

// The integral of the states between two times, for groups of one kind.
class Integral {
 public:
  explicit Integral(const History& history) {
    for (const Moment& moment : history.moments) {
      const std::int64_t time = micros(moment.time);
      const bool is_start =
          moment.is_start || (!points_.empty() && points_.back().time == time && points_.back().is_start);
      if (!points_.empty() && points_.back().time == time) points_.pop_back();
      points_.push_back({time, is_start, look(moment.status)});
    }
  }

  [[nodiscard]] std::int64_t first() const { return points_.front().time; }
  [[nodiscard]] std::int64_t last() const { return points_.back().time; }

  [[nodiscard]] Expected over(std::int64_t since, std::int64_t until, const std::string& by) const {
    Expected expected;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const Point& point = points_[i];
      for (const auto& [rank, target] : point.targets) {
        const std::int64_t end = std::min(until, i + 1 < points_.size() ? points_[i + 1].time : until);
        for (std::int64_t begin = std::max(since, point.time); begin < end;) {
          const std::int64_t part = std::min(end, next_month(begin));
          Sums sums{};
          for (std::size_t k = 0; k < target.is.size(); ++k) sums.at(k) = target.is.at(k) ? part - begin : 0;
          add(expected, target, by, begin, sums);
          begin = part;
        }
        if (point.is_start || i == 0 || point.time <= since || point.time > until) continue;
        const auto before = points_[i - 1].targets.find(rank);
        if (before == points_[i - 1].targets.end() || !before->second.up() || !target.unavailable()) continue;
        add(expected, target, by, point.time, {0, 0, 0, 0, 0, 0, 0, 1});
      }
    }
    std::erase_if(expected.groups, [](const auto& group) { return group.second == Sums{}; });
    return expected;
  }

 private:
  struct Point {
    std::int64_t time = 0;
    bool is_start = false;
    std::map<IdSet::Id, Seen> targets;
  };

  static void add(Expected& expected, const Seen& target, const std::string& by, std::int64_t time,
                  const Sums& sums) {
    const auto add_to = [&](Sums& all) {
      for (std::size_t k = 0; k < all.size(); ++k) all.at(k) += sums.at(k);
    };
    add_to(expected.total);
    if (by == "host") add_to(expected.groups[target.host]);
    if (by == "month") add_to(expected.groups[name_of_month(time)]);
    if (by == "reason" && target.unavailable()) add_to(expected.groups[target.cause + ":" + target.reason]);
    if (by != "property") return;
    for (const std::string& name : target.properties) add_to(expected.groups[name]);
  }

  std::vector<Point> points_;
};

json report(History& history, const json& request) {
  history.stand.request(history.owner, "resource.report", request);
  while (history.stand.silent(history.owner)) history.stand.step();
  return history.stand.receive_json(history.owner);
}

// Asks for each kind of groups, and compares with the integral over the time of the answer. Returns the
// beginning of that time.
std::int64_t check_report(History& history, const Integral& integral, double since, double until) {
  std::int64_t from = 0;
  for (const std::string by : {"host", "reason", "property", "month"}) {
    CAPTURE(by);
    const json answer = report(history, {{"since", since}, {"until", until}, {"by", by}});
    from = micros(answer["since"].get<double>());
    const Expected expected = integral.over(from, micros(answer["until"].get<double>()), by);
    CHECK(text_of(sums_of(answer["total"])) == text_of(expected.total));
    CHECK_FALSE(answer.contains("missing"));
    std::map<std::string, Sums> groups;
    for (const json& group : answer["groups"]) {
      std::string name = group["name"];
      if (group.contains("cause")) {
        const std::string cause = group["cause"];
        name = cause == "drain" ? "drain:" + name : cause + ":";
      }
      const Sums sums = sums_of(group);
      if (sums != Sums{}) CHECK(groups.emplace(name, sums).second);
    }
    for (const auto& [name, sums] : expected.groups) {
      CAPTURE(name);
      CHECK(text_of(groups[name]) == text_of(sums));
    }
    CHECK(groups.size() == expected.groups.size());
  }
  return from;
}

// Trims, and waits until all events that may be dropped are gone.
void trim_all(History& history, double before) {
  const std::string path = log::store_path(history.stand.dir.file("state"));
  for (int call = 0; call < 2; ++call) history.stand.store->trim(wall_time(before));
  // Events at the time of the newest event are kept.
  const std::string left = fmt::format(
      "SELECT count(*) FROM event WHERE timestamp < {:.6f} AND timestamp < (SELECT max(timestamp) FROM "
      "event)",
      before - 1e-3);
  while (number(path, left.c_str()) > 0) std::this_thread::yield();
}

TEST_CASE("a report is the integral of the states, over random histories, restarts and renumbered hosts") {
  for (unsigned seed = 1; seed <= resourced::test::thorough(100U, 8U); ++seed) {
    CAPTURE(seed);
    History history(seed);
    history.pace = seed % 2 == 0 ? 3000 : 1;
    history.run(50);
    const Integral integral(history);
    CHECK(check_report(history, integral, 0, history.stand.now) == integral.first());
    const double since = history.moments.at(10 + history.below(10)).time + 0.25;
    const double until = history.moments.at(30 + history.below(10)).time + 0.25;
    CHECK(check_report(history, integral, since, until) == micros(since));
    // A report that begins at the time of an event counts its change from there on.
    CHECK(check_report(history, integral, history.moments.at(20).time, history.moments.at(40).time) ==
          micros(history.moments.at(20).time));
  }
}

TEST_CASE("a report stays true when the log is trimmed, over months, trims and restarts") {
  for (unsigned seed = 1; seed <= resourced::test::thorough(100U, 8U); ++seed) {
    CAPTURE(seed);
    History history(1000 + seed);
    history.pace = seed % 2 == 0 ? 3000 : 40;
    history.run(30);
    trim_all(history, history.moments.at(10).time);
    history.run(10);
    trim_all(history, history.moments.at(15).time);
    if (seed % 3 == 0) {
      history.stand.now += 1;
      history.stand.restart();
      history.begin();
    }
    history.run(10);
    trim_all(history, history.moments.at(35).time);
    const std::string path = log::store_path(history.stand.dir.file("state"));
    log::Database database(path);
    const auto rolled_up = log::UsageReader(database).rolled_up();
    REQUIRE(rolled_up);
    CHECK(rolled_up->since == micros(1000));
    const Integral integral(history);
    CHECK(check_report(history, integral, 0, history.stand.now) == integral.first());
    // Rolled-up usage is known only for whole months.
    const double since = history.moments.at(5).time + 1;
    CHECK(check_report(history, integral, since, history.stand.now) ==
          std::max(this_month(micros(since)), integral.first()));
    const double until = static_cast<double>(rolled_up->until) / 1e6 - 1;
    const json part = report(history, {{"since", 0}, {"until", until}});
    CHECK(micros(part["until"].get<double>()) == std::min(next_month(micros(until)), rolled_up->until));
    // After the time that is rolled up, every time is known.
    const double later = static_cast<double>(rolled_up->until) / 1e6 + 1;
    if (later < history.stand.now)
      CHECK(check_report(history, integral, later, history.stand.now) == micros(later));
  }
}

TEST_CASE("a report says what is not known, and counts the rest") {
  History history(5);
  for (int i = 0; i < 4; ++i) {
    history.stand.now += 100;
    REQUIRE(history.stand
                .call(history.owner, i % 2 == 0 ? "resource.drain" : "resource.undrain", {{"targets", "3"}})
                .errnum() == 0);
  }
  history.stand.now += 100;
  const std::string path = log::store_path(history.stand.dir.file("state"));
  // The drain at 1300 cannot be read: nothing is known from the undrain at 1200 on.
  log::Database(path).execute(
      "UPDATE event SET text = replace(text, 'drain', 'brain') WHERE timestamp = 1300");
  const json damaged = report(history, {{"since", 0}});
  CHECK(damaged["missing"] == 300);
  CHECK(damaged["total"]["drained"] == 100);
  CHECK(damaged["total"]["time"] == 8 * 200);
  // The end of the daemon writes a snapshot after the undrain at 1400, from which it goes on.
  history.stand.restart();
  history.owner = history.stand.connect();
  history.stand.now += 50;
  const json later = report(history, {{"since", 0}});
  CHECK(later["missing"] == 200);
  CHECK(later["total"]["time"] == 8 * (200 + 150));
  // The roll-up has the gap as well.
  (void)history.stand.call(history.owner, "resource.drain", {{"targets", "0"}});
  trim_all(history, history.stand.now);
  CHECK(report(history, {{"since", 0}})["missing"] == 200);
  // Damage of a roll-up is an error.
  log::Database(path).execute("UPDATE usage SET text = replace(text, 'total', 'tital')");
  history.stand.request(history.owner, "resource.report", {{"since", 0}});
  while (history.stand.silent(history.owner)) history.stand.step();
  CHECK(history.stand.receive(history.owner).errnum() == EBADMSG);
}

TEST_CASE("a log whose states are known only from a later month on is trimmed, and missing until then") {
  History history(5);
  constexpr double day = 86400;
  const auto change = [&](int i) {
    history.stand.now += 20 * day;
    REQUIRE(history.stand
                .call(history.owner, i % 2 == 0 ? "resource.drain" : "resource.undrain", {{"targets", "3"}})
                .errnum() == 0);
  };
  // An imported log, from which no state follows.
  std::string log =
      R"({"timestamp":1000,"name":"restart","context":{"ranks":"0-1","online":"","nodelist":"c,d0"}})"
      "\n";
  double known = 1000;
  for (int i = 0; i < 6; ++i) {
    known += 20 * day;
    log += fmt::format(
        R"({{"timestamp":{},"name":"{}drain","context":{{"idset":"0","nodelist":"c","overwrite":0}}}})"
        "\n",
        known, i % 2 == 0 ? "" : "un");
  }
  history.stand.now = known;
  history.begin_with_import(log);
  for (int i = 0; i < 6; ++i) change(i);
  trim_all(history, history.stand.now);
  const json answer = report(history, {{"since", 0}});
  CHECK(answer["since"] == known);
  CHECK(answer["total"]["time"] == 8 * (history.stand.now - known));
  CHECK(answer["total"]["drained"] == 3 * 20 * day);
  CHECK_FALSE(answer.contains("missing"));
}

TEST_CASE("a damaged end of the roll-ups costs what they have, and no report of the log") {
  History history(5);
  const auto change = [&](const char* topic) {
    history.stand.now += 100;
    REQUIRE(history.stand.call(history.owner, topic, {{"targets", "3"}}).errnum() == 0);
  };
  change("resource.drain");
  change("resource.undrain");
  change("resource.drain");
  const double begin = history.stand.now;
  trim_all(history, begin);
  change("resource.undrain");
  const std::string path = log::store_path(history.stand.dir.file("state"));
  log::Database(path).execute("UPDATE rolled_up SET until = until + 1");
  CHECK(report(history, {{"since", begin}})["total"]["drained"] == 100);
  history.stand.request(history.owner, "resource.report", {{"since", 0}});
  while (history.stand.silent(history.owner)) history.stand.step();
  CHECK(history.stand.receive(history.owner).errnum() == EBADMSG);
  // The next roll-up starts anew.
  change("resource.drain");
  change("resource.undrain");
  trim_all(history, history.stand.now);
  CHECK(report(history, {{"since", 0}})["total"]["drained"] == 200);
}

TEST_CASE("reports are few at a time, and bounded") {
  History history(1);
  history.stand.now += 10;
  const auto ask = [&](proto::ClientId client) {
    history.stand.request(client, "resource.report", {{"since", 0}, {"by", "host"}});
  };
  const proto::ClientId other = history.stand.connect({77, 77, {}, {}});
  const proto::ClientId third = history.stand.connect({78, 78, {}, {}});
  ask(history.owner);
  ask(history.owner);
  CHECK(history.stand.receive(history.owner).errnum() == EBUSY);
  ask(other);
  ask(third);
  CHECK(history.stand.receive(third).errnum() == EBUSY);
  // Questions about the state at a time have their own limit.
  history.stand.request(third, "resource.status-at", {{"at", history.stand.now}});
  CHECK(history.stand.silent(third));
  // The report of a client that is gone counts until the log has dropped it.
  history.stand.disconnect(history.owner);
  while (history.stand.silent(other) || history.stand.silent(third)) history.stand.step();
  CHECK(history.stand.receive(other).errnum() == 0);
  CHECK(history.stand.receive(third).errnum() == 0);
  history.owner = history.stand.connect();
  const json few = report(history, {{"since", 0}, {"by", "host"}, {"limit", 2}});
  CHECK(few["groups"].size() == 2);
  CHECK(few["left-out"] == 5);
  CHECK(few["total"]["time"] == 80);
  const auto refused = [&](const json& request) {
    return history.stand.call(history.owner, "resource.report", request).errnum();
  };
  CHECK(refused({{"since", "noon"}}) == EPROTO);
  CHECK(refused(nullptr) == EPROTO);
  CHECK(refused({{"since", 5}, {"until", 5}}) == EINVAL);
  CHECK(refused({{"since", history.stand.now}}) == EINVAL);
  CHECK(refused({{"since", 0}, {"by", "rack"}}) == EINVAL);
  CHECK(refused({{"since", 0}, {"limit", 0}}) == EINVAL);
  CHECK(refused({{"since", 0}, {"limit", "all"}}) == EPROTO);
}

}  // namespace
}  // namespace resourced::daemon::test
