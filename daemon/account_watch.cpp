#include "daemon/account_watch.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "os/log.hpp"

namespace resourced::daemon {

/// Shared by the loop and the thread: the thread may outlive the watch.
struct AccountWatch::LookUp {
  Rules asked;
  std::mutex mutex;
  std::optional<Rules> found;
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
    os::log_info("access.rule: all accounts that rules name are there");
  } else {
    os::log_warning("access.rule: there is no {}: rules apply to nobody of that name until there is",
                    fmt::join(unknown, ", "));
  }
}

}  // namespace

AccountWatch::AccountWatch(boost::asio::io_context& loop, Rules& rules, std::function<void()> changed,
                           Ask ask, Seconds pause)
    : timer_(loop), rules_(rules), changed_(std::move(changed)), ask_(std::move(ask)), pause_(pause) {
  wait();
}

void AccountWatch::wait() {
  timer_.expires_after(std::chrono::ceil<std::chrono::milliseconds>(pause_));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    if (look_up_) take();
    if (!look_up_) begin();
    wait();
  });
}

void AccountWatch::take() {
  std::optional<Rules> found;
  {
    const std::lock_guard lock(look_up_->mutex);
    found.swap(look_up_->found);
  }
  if (!found) return;
  const std::shared_ptr<LookUp> done = std::exchange(look_up_, nullptr);
  // A reload has replaced the rules meanwhile, or nothing is new.
  if (rules_ != done->asked || rules_ == *found) return;
  if (unknown_in(rules_) != unknown_in(*found)) log_unknown(*found);
  rules_ = *std::move(found);
  changed_();
}

void AccountWatch::begin() {
  if (rules_.empty()) return;
  auto look_up = std::make_shared<LookUp>();
  look_up->asked = rules_;
  try {
    std::thread([look_up, ask = ask_] {
      Rules found;
      for (const config::AccessRule& rule : look_up->asked) found.push_back(ask(rule));
      const std::lock_guard lock(look_up->mutex);
      look_up->found = std::move(found);
    }).detach();
    look_up_ = std::move(look_up);
  } catch (const std::exception&) {
    // The system has no thread now: the next try may find one.
  }
}

}  // namespace resourced::daemon
