#include "daemon/streams/journal_credit.hpp"

#include <utility>

namespace resourced::daemon::streams {

void Bell::ring() {
  if (rung_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  if (call_) call_();
}

void Bell::remove() {
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
}

bool Credit::has_room() noexcept { return account_->has_room(); }

// Compares again at the end: bytes returned before `awaited_` was set do not notify the loop.
bool Credit::Account::has_room() noexcept {
  if (under_way_ < most) return true;
  awaited_ = true;
  return under_way_ <= most / 2;
}

void Credit::Account::give_back(std::size_t size) {
  const std::size_t left = under_way_.fetch_sub(size) - size;
  if (left <= most / 2 && awaited_.exchange(false)) bell_->ring();
}

proto::Payload Credit::lend(const proto::Payload& payload) {
  const std::size_t size = payload->size() + envelope;
  account_->take(size);
  return {payload.get(),
          [account = account_, payload, size](const std::string* /*bytes*/) { account->give_back(size); }};
}

}  // namespace resourced::daemon::streams
