// resource.user-names: names of users, which are looked up outside of the loop.
#include "daemon/service/user_names.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "core/error.hpp"
#include "no_threads.hpp"
#include "service_stand.hpp"

namespace resourced::daemon::service {
namespace {

using nlohmann::json;
using text::IdSet;

/// A user database that answers when the test says so.
struct Database {
  std::mutex mutex;
  std::condition_variable opened;
  bool is_open = false;
  std::atomic<int> asked = 0;

  std::optional<std::string> ask(std::uint32_t uid) {
    ++asked;
    std::unique_lock lock(mutex);
    opened.wait(lock, [this] { return is_open; });
    return uid == 9 ? std::nullopt : std::optional("user" + std::to_string(uid));
  }
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    opened.notify_all();
  }
};

std::map<std::uint32_t, std::string> until_known(UserNames& names, const IdSet& ids, std::size_t count) {
  while (true) {
    if (auto found = names.find(ids, steady_time(1)); found.size() == count) return found;
    std::this_thread::yield();
  }
}

TEST_CASE("a name is known once the user database has answered, for which nobody waits") {
  const auto database = std::make_shared<Database>();
  UserNames names([database](std::uint32_t uid) { return database->ask(uid); });
  const IdSet ids = IdSet::parse("7,9,1000");
  CHECK(names.find(ids, steady_time(1)).empty());
  CHECK(names.find(ids, steady_time(1)).empty());
  database->open();
  const auto found = until_known(names, ids, 2);
  CHECK(found.at(7) == "user7");
  CHECK(found.at(1000) == "user1000");
  // Each uid was looked up once, also the one without a name.
  while (database->asked < 3) std::this_thread::yield();
  (void)names.find(ids, steady_time(600));
  CHECK(database->asked == 3);
}

TEST_CASE("a name is asked for again after ten minutes, and at most 1024 at once") {
  const auto database = std::make_shared<Database>();
  database->open();
  UserNames names([database](std::uint32_t uid) { return database->ask(uid); });
  (void)until_known(names, IdSet{7}, 1);
  CHECK(names.find(IdSet{7}, steady_time(602)).empty());
  CHECK_THROWS_WITH_AS((void)names.find(IdSet::range(0, 1024), steady_time(1)), "userids: more than 1024",
                       Error);
}

TEST_CASE("without a thread for it names stay unknown, and the daemon goes on") {
  const test::NoThreads none;
  UserNames names([](std::uint32_t) { return std::optional<std::string>("x"); });
  CHECK(names.find(IdSet{7}, steady_time(1)).empty());
}

TEST_CASE("resource.user-names takes an idset of uids") {
  test::Stand stand;
  const auto ask = [&](const json& payload) {
    return stand.call(stand.connect(), "resource.user-names", payload);
  };
  json found;
  while (found.empty()) found = json::parse(ask({{"userids", "0,4000000000"}}).text()).at("names");
  CHECK(found == json{{"0", "root"}});
  CHECK(ask(json::object()).errnum() == EPROTO);
  CHECK(ask({{"userids", "root"}}).errnum() == EINVAL);
}

}  // namespace
}  // namespace resourced::daemon::service
