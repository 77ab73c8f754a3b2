#include "proto/matchtag_pool.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::proto {

std::uint32_t MatchtagPool::allocate() {
  if (tags_.size() >= limit_) {
    throw Error(EAGAIN, fmt::format("{} requests wait for a response already", tags_.size()));
  }
  std::uint32_t tag = last_;
  do {
    tag = tag == largest_ ? 1 : tag + 1;
  } while (tags_.contains(tag));
  tags_.emplace(tag, MatchtagState::pending);
  last_ = tag;
  return tag;
}

bool MatchtagPool::cancel(std::uint32_t tag) noexcept {
  const auto found = tags_.find(tag);
  if (found == tags_.end() || found->second != MatchtagState::pending) {
    return false;
  }
  found->second = MatchtagState::cancelled;
  return true;
}

MatchtagState MatchtagPool::receive(const Message& response) noexcept {
  const auto before = state(response.matchtag);
  if (is_final(response)) {
    tags_.erase(response.matchtag);
  }
  return before;
}

MatchtagState MatchtagPool::state(std::uint32_t tag) const noexcept {
  const auto found = tags_.find(tag);
  return found == tags_.end() ? MatchtagState::unused : found->second;
}

}  // namespace resourced::proto
