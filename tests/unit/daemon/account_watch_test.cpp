// Accounts named by access rules that change while the daemon runs.
#include "daemon/account_watch.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

namespace resourced::daemon {
namespace {

using Rules = AccountWatch::Rules;

config::AccessRule of_users(std::vector<std::uint32_t> users) {
  config::AccessRule rule;
  rule.users = std::move(users);
  rule.group_names = {"operators"};
  return rule;
}

struct Watched {
  template <class IsDone>
  void run_until(IsDone is_done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_done()) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      loop.run_one_for(std::chrono::milliseconds(100));
    }
  }
  void watch(std::function<config::AccessRule(const config::AccessRule&)> rule,
             std::function<std::optional<std::vector<std::uint32_t>>(std::uint32_t)> groups_of = nullptr,
             Seconds pause = Seconds(0.001)) {
    watch_.emplace(
        loop, rules,
        [this](const config::UserGroups& found) {
          ++changes;
          groups = found;
        },
        [this] { return connected; }, UserDatabase{std::move(rule), std::move(groups_of)}, pause);
  }

  boost::asio::io_context loop;
  Rules rules{of_users({7})};
  int changes = 0;
  config::UserGroups groups;
  std::set<std::uint32_t> connected;
  std::optional<AccountWatch> watch_;
};

TEST_CASE_FIXTURE(Watched, "members of a group that join and leave count after a while, without a reload") {
  struct Database {
    std::atomic<std::uint32_t> member = 7;
    std::atomic<int> asked = 0;
  };
  // The database is shared, as a thread may ask it after the test.
  const auto database = std::make_shared<Database>();
  watch([database](const config::AccessRule& /*rule*/) {
    ++database->asked;
    return of_users({database->member});
  });
  run_until([&] { return database->asked > 3; });
  CHECK(changes == 0);
  database->member = 8;
  run_until([&] { return changes == 1; });
  CHECK(rules[0].users == std::vector<std::uint32_t>{8});
}

TEST_CASE_FIXTURE(Watched, "what was looked up for rules that a reload has replaced is passed over") {
  struct Database {
    std::promise<void> begun;
    std::promise<void> answer;
    std::atomic<int> asked = 0;
  };
  const auto database = std::make_shared<Database>();
  watch([database](const config::AccessRule& rule) {
    if (database->asked++ > 0) return rule;
    database->begun.set_value();
    database->answer.get_future().wait();
    return of_users({8});
  });
  auto has_begun = database->begun.get_future();
  run_until([&] { return has_begun.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  rules = {of_users({9})};
  database->answer.set_value();
  run_until([&] { return database->asked > 2; });
  CHECK(changes == 0);
  CHECK(rules[0].users == std::vector<std::uint32_t>{9});
}

TEST_CASE_FIXTURE(Watched, "the groups of a user who connects are looked up at once, and again and again") {
  struct Database {
    std::atomic<std::uint32_t> group = 100;
    std::atomic<int> asked = 0;
  };
  const auto database = std::make_shared<Database>();
  const auto same = [](const config::AccessRule& rule) { return rule; };
  const auto groups_of = [database](std::uint32_t uid) {
    ++database->asked;
    return std::vector<std::uint32_t>{uid, database->group};
  };
  SUBCASE("at once") {
    watch(same, groups_of, Seconds(3600));
    watch_->saw(8);
    run_until([&] { return changes == 1; });
    CHECK(groups == config::UserGroups{{8, {8, 100}}});
    // User 10 connects while the groups of user 9 are looked up.
    watch_->saw(9);
    watch_->saw(10);
    run_until([&] { return groups.size() == 3; });
    CHECK(groups.at(10) == std::vector<std::uint32_t>{10, 100});
  }
  SUBCASE("again") {
    watch(same, groups_of);
    watch_->saw(8);
    run_until([&] { return changes == 1; });
    database->group = 101;
    run_until([&] { return changes == 2; });
    CHECK(groups == config::UserGroups{{8, {8, 101}}});
  }
  SUBCASE("only if a rule names groups") {
    rules[0].group_names.clear();
    watch(same, groups_of, Seconds(3600));
    watch_->saw(8);
    loop.poll();
    CHECK(database->asked == 0);
  }
}

TEST_CASE_FIXTURE(Watched, "however many users connect, those of open connections keep their groups") {
  const auto same = [](const config::AccessRule& rule) { return rule; };
  watch(same, [](std::uint32_t uid) { return std::vector<std::uint32_t>{uid}; });
  connected = {8};
  watch_->saw(8);
  for (std::uint32_t other = 1000; other < 4000; ++other) watch_->saw(other);
  run_until([&] { return groups.contains(3999); });
  CHECK(groups.contains(8));
  CHECK(groups.size() < 2000);
}

TEST_CASE_FIXTURE(Watched, "a rule that a reload adds reaches the groups of users who had connected before") {
  const auto same = [](const config::AccessRule& rule) { return rule; };
  const Rules with_groups = rules;
  SUBCASE("where no rule named groups") { rules[0].group_names.clear(); }
  SUBCASE("where there were no rules") { rules.clear(); }
  watch(same, [](std::uint32_t uid) { return std::vector<std::uint32_t>{uid}; });
  watch_->saw(8);
  loop.run_for(std::chrono::milliseconds(20));
  CHECK(groups.empty());
  rules = with_groups;
  run_until([&] { return groups.contains(8); });
}

TEST_CASE_FIXTURE(Watched, "without rules no groups are kept, which could be others by the next reload") {
  const auto same = [](const config::AccessRule& rule) { return rule; };
  watch(same, [](std::uint32_t uid) { return std::vector<std::uint32_t>{uid}; });
  watch_->saw(8);
  run_until([&] { return groups.contains(8); });
  rules.clear();
  run_until([&] { return groups.empty(); });
}

TEST_CASE_FIXTURE(Watched, "while the user database does not answer, the last groups of a user hold") {
  struct Database {
    std::atomic<bool> answers = true;
    std::atomic<int> asked = 0;
  };
  const auto database = std::make_shared<Database>();
  const auto same = [](const config::AccessRule& rule) { return rule; };
  watch(same, [database](std::uint32_t uid) -> std::optional<std::vector<std::uint32_t>> {
    ++database->asked;
    if (!database->answers) return std::nullopt;
    return std::vector<std::uint32_t>{uid};
  });
  watch_->saw(8);
  run_until([&] { return groups.contains(8); });
  database->answers = false;
  const int before = database->asked;
  run_until([&] { return database->asked > before + 3; });
  CHECK(groups == config::UserGroups{{8, {8}}});
  CHECK(changes == 1);
}

TEST_CASE("the end of a daemon waits for no server of accounts") {
  struct Server {
    std::promise<void> begun;
    std::promise<void> answer;
  };
  const auto server = std::make_shared<Server>();
  auto begun = server->begun.get_future();
  {
    Watched it;
    it.watch([server](const config::AccessRule& rule) {
      server->begun.set_value();
      server->answer.get_future().wait();
      return rule;
    });
    it.run_until([&] { return begun.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  }
  server->answer.set_value();
}

}  // namespace
}  // namespace resourced::daemon
