// Looks the accounts of [[access.rule]] up again while the daemon serves: a user that joins or leaves a
// group, and an account that is made later, count without a reload. Looks up all groups of users who connect,
// as the entry of a group need not list all of its members.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/access.hpp"
#include "core/time.hpp"

namespace resourced::daemon {

/// The user database of this machine. Both functions are called on a thread of their own, as a server of
/// accounts may take long to answer.
struct UserDatabase {
  std::function<config::AccessRule(const config::AccessRule&)> rule = config::looked_up;
  std::function<std::optional<std::vector<std::uint32_t>>(std::uint32_t)> groups = config::groups_of_user;
};

class AccountWatch {
 public:
  using Rules = std::vector<config::AccessRule>;
  /// Keeps the accounts of `rules`, which a reload may replace, as the user database has them, and calls
  /// `changed` after a change, with the groups of users who have connected. Begins a look-up `pause` after
  /// the last one has ended. `connected` has the users of open connections.
  AccountWatch(boost::asio::io_context& loop, Rules& rules,
               std::function<void(const config::UserGroups&)> changed,
               std::function<std::set<std::uint32_t>()> connected, UserDatabase ask = {},
               Seconds pause = Seconds(15));
  /// The destructor does not wait for a look-up that is under way.
  ~AccountWatch() = default;
  AccountWatch(const AccountWatch&) = delete;
  AccountWatch& operator=(const AccountWatch&) = delete;
  AccountWatch(AccountWatch&&) = delete;
  AccountWatch& operator=(AccountWatch&&) = delete;

  /// A user connects. The groups of a new one are looked up at once, if a rule names groups.
  void saw(std::uint32_t uid);

 private:
  struct LookUp;

  void wait();
  [[nodiscard]] bool names_groups() const;
  void take();
  void begin();

  boost::asio::steady_timer timer_;
  Rules& rules_;
  std::function<void(const config::UserGroups&)> changed_;
  std::function<std::set<std::uint32_t>()> connected_;
  UserDatabase ask_;
  Seconds pause_;
  /// Users who have connected. If they are many, only those with open connections stay.
  std::set<std::uint32_t> seen_;
  /// Whether a user was seen that the look-up under way does not know.
  bool has_new_ = false;
  config::UserGroups groups_;
  /// The look-up that is under way, or whose result was not taken yet.
  std::shared_ptr<LookUp> look_up_;
};

}  // namespace resourced::daemon
