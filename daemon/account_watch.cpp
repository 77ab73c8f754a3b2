#include "daemon/account_watch.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "os/log.hpp"
#include "os/thread.hpp"

namespace resourced::daemon {

/// A look-up of accounts. The loop and the thread share it, as the thread may outlive the watch.
struct AccountWatch::LookUp {
  struct Found {
    Rules rules;
    config::UserGroups groups;
  };
  Rules asked;
  std::set<std::uint32_t> users;
  /// The answers before, which hold for a user whose look-up fails.
  config::UserGroups known;
  std::mutex mutex;
  std::optional<Found> found;
};

namespace {

std::vector<std::string> unknown_in(const AccountWatch::Rules& rules) {
  std::vector<std::string> unknown;
  for (const config::AccessRule& rule : rules)
    unknown.insert(unknown.end(), rule.unknown.begin(), rule.unknown.end());
  return unknown;
}

void log_unknown(const AccountWatch::Rules& rules) {
  const std::vector<std::string> unknown = unknown_in(rules);
  if (unknown.empty()) {
    os::log_info("access.rule: all users and groups that the rules name exist");
  } else {
    os::log_warning(
        "access.rule: unknown {}: the rules have no effect for these names until the accounts exist",
        fmt::join(unknown, ", "));
  }
}

}  // namespace

AccountWatch::AccountWatch(boost::asio::io_context& loop, Rules& rules,
                           std::function<void(const config::UserGroups&)> changed,
                           std::function<std::set<std::uint32_t>()> connected, UserDatabase ask,
                           Seconds pause)
    : timer_(loop),
      rules_(rules),
      changed_(std::move(changed)),
      connected_(std::move(connected)),
      ask_(std::move(ask)),
      pause_(pause) {
  wait();
}

void AccountWatch::wait() {
  // A look-up under way takes milliseconds as a rule, so its result is asked for soon.
  constexpr Seconds moment{0.05};
  const Seconds time = look_up_ ? std::min(moment, pause_) : pause_;
  timer_.expires_after(std::chrono::ceil<std::chrono::milliseconds>(time));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    if (look_up_) {
      take();
      if (!look_up_ && has_new_) begin();
    } else {
      begin();
    }
    wait();
  });
}

bool AccountWatch::names_groups() const {
  return std::ranges::any_of(rules_, [](const auto& rule) { return !rule.group_names.empty(); });
}

void AccountWatch::saw(std::uint32_t uid) {
  constexpr std::size_t most = 1024;
  if (seen_.contains(uid)) return;
  if (seen_.size() >= most) seen_ = connected_();
  seen_.insert(uid);
  // Without groups in the rules no look-up begins. If a later reload names groups, the next one asks for all
  // users in `seen_`.
  if (!names_groups()) return;
  has_new_ = true;
  if (look_up_) return;
  begin();
  wait();
}

void AccountWatch::take() {
  std::optional<LookUp::Found> found;
  {
    const std::lock_guard lock(look_up_->mutex);
    found.swap(look_up_->found);
  }
  if (!found) return;
  const std::shared_ptr<LookUp> done = std::exchange(look_up_, nullptr);
  // A reload may have replaced the rules meanwhile.
  const bool has_rules = rules_ == done->asked && rules_ != found->rules;
  if (!has_rules && groups_ == found->groups) return;
  groups_ = std::move(found->groups);
  if (has_rules) {
    if (unknown_in(rules_) != unknown_in(found->rules)) log_unknown(found->rules);
    rules_ = std::move(found->rules);
  }
  changed_(groups_);
}

void AccountWatch::begin() {
  has_new_ = false;
  if (rules_.empty()) {
    // The present groups say nothing about the time when there are rules again.
    if (!std::exchange(groups_, {}).empty()) changed_(groups_);
    return;
  }
  auto look_up = std::make_shared<LookUp>();
  look_up->asked = rules_;
  if (names_groups()) look_up->users = seen_;
  look_up->known = groups_;
  try {
    os::start_thread([look_up, ask = ask_] {
      LookUp::Found found;
      for (const config::AccessRule& rule : look_up->asked) found.rules.push_back(ask.rule(rule));
      for (const std::uint32_t uid : look_up->users) {
        if (auto groups = ask.groups(uid)) {
          found.groups[uid] = *std::move(groups);
        } else if (const auto before = look_up->known.find(uid); before != look_up->known.end()) {
          found.groups.insert(*before);
        }
      }
      const std::lock_guard lock(look_up->mutex);
      look_up->found = std::move(found);
    });
    look_up_ = std::move(look_up);
  } catch (const std::exception&) {
    // The system has no thread now. The next try may find one.
  }
}

}  // namespace resourced::daemon
