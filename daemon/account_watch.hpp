// Looks the accounts of [[access.rule]] up again while the daemon serves: who joins or leaves a group, and an
// account that is made later, counts without a reload.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/access.hpp"
#include "core/time.hpp"

namespace resourced::daemon {

class AccountWatch {
 public:
  using Rules = std::vector<config::AccessRule>;
  using Ask = std::function<config::AccessRule(const config::AccessRule&)>;

  /// Keeps the accounts of `rules`, which a reload may replace, as the user database has them, and calls
  /// `changed` after a change. Begins a look-up after each `pause`, and takes what it has found after the
  /// next one. `ask` is called on a thread of its own, as a server of accounts may not answer for long.
  AccountWatch(boost::asio::io_context& loop, Rules& rules, std::function<void()> changed,
               Ask ask = config::looked_up, Seconds pause = Seconds(15));
  /// Does not wait for a look-up that is under way.
  ~AccountWatch() = default;
  AccountWatch(const AccountWatch&) = delete;
  AccountWatch& operator=(const AccountWatch&) = delete;
  AccountWatch(AccountWatch&&) = delete;
  AccountWatch& operator=(AccountWatch&&) = delete;

 private:
  struct LookUp;

  void wait();
  void take();
  void begin();

  boost::asio::steady_timer timer_;
  Rules& rules_;
  std::function<void()> changed_;
  Ask ask_;
  Seconds pause_;
  /// The one that is under way, or whose result is not taken.
  std::shared_ptr<LookUp> look_up_;
};

}  // namespace resourced::daemon
