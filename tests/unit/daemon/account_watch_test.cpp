// Accounts of access rules that change while the daemon serves.
#include "daemon/account_watch.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
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
  void watch(AccountWatch::Ask ask) {
    watch_.emplace(
        loop, rules, [this] { ++changes; }, std::move(ask), Seconds(0.001));
  }

  boost::asio::io_context loop;
  Rules rules{of_users({7})};
  int changes = 0;
  std::optional<AccountWatch> watch_;
};

TEST_CASE_FIXTURE(Watched, "members of a group that join and leave count after a while, without a reload") {
  struct Database {
    std::atomic<std::uint32_t> member = 7;
    std::atomic<int> asked = 0;
  };
  // Shared, as a thread may ask after the test.
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
