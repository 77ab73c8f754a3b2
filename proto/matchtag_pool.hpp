// The matchtags of a client's requests (RFC 6): unique among those that a response may still come for. The
// caller knows which request of its own has which matchtag.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "proto/message.hpp"

namespace resourced::proto {

enum class MatchtagState : std::uint8_t {
  /// Not in use: a response with this tag is a stray one.
  unused,
  /// The caller waits for the response.
  pending,
  /// The caller no longer waits, but the last response has not come yet.
  cancelled,
};

class MatchtagPool {
 public:
  static constexpr std::size_t default_limit = 65536;

  /// `limit`: how many tags may be in use at a time. `largest`: tags are 1 to this, in turn; no less than the
  /// limit.
  explicit MatchtagPool(std::size_t limit = default_limit,
                        std::uint32_t largest = std::numeric_limits<std::uint32_t>::max()) noexcept
      : limit_(limit), largest_(largest) {
    assert(limit <= largest);
  }

  /// The next tag in turn that is not in use, never 0. Error EAGAIN if the limit is reached.
  std::uint32_t allocate();

  /// The caller no longer waits. The tag stays in use until the last response. False if it is not pending.
  bool cancel(std::uint32_t tag) noexcept;

  /// Records a response, and frees its tag if it is the last one. Returns the earlier state of the tag: only
  /// a response to a pending tag is delivered.
  MatchtagState receive(const Message& response) noexcept;

  /// Frees a tag whose request was never sent.
  void release(std::uint32_t tag) noexcept { tags_.erase(tag); }

  /// Frees all tags: with their connection gone no response can come.
  void clear() noexcept { tags_.clear(); }

  [[nodiscard]] MatchtagState state(std::uint32_t tag) const noexcept;
  /// How many tags are in use, the cancelled ones included.
  [[nodiscard]] std::size_t size() const noexcept { return tags_.size(); }

 private:
  std::size_t limit_;
  std::uint32_t largest_;
  std::uint32_t last_ = 0;
  std::unordered_map<std::uint32_t, MatchtagState> tags_;
};

}  // namespace resourced::proto
