// Allocates the matchtags of a client's requests (RFC 6): they are unique among those for which a response
// may still come. The caller knows which of its requests has which matchtag.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "proto/message.hpp"

namespace resourced::proto {

enum class MatchtagState : std::uint8_t {
  /// The tag is not in use: a response with it is a stray one.
  unused,
  /// The caller waits for the response.
  pending,
  /// The caller no longer waits, but the last response has not come yet.
  cancelled,
};

class MatchtagPool {
 public:
  static constexpr std::size_t default_limit = 65536;

  /// `limit` is the maximum number of tags in use at a time. Tags are 1 to `largest`, in turn; it must be at
  /// least the limit.
  explicit MatchtagPool(std::size_t limit = default_limit,
                        std::uint32_t largest = std::numeric_limits<std::uint32_t>::max()) noexcept
      : limit_(limit), largest_(largest) {
    assert(limit <= largest);
  }

  /// Returns the next tag in turn that is not in use, never 0. Error EAGAIN if the limit is reached.
  std::uint32_t allocate();

  /// Records that the caller no longer waits. The tag stays in use until the last response. Returns false if
  /// it is not pending.
  bool cancel(std::uint32_t tag) noexcept;

  /// Records a response, and frees its tag if it is the last one. Returns the earlier state of the tag: only
  /// a response to a pending tag is delivered.
  MatchtagState receive(const Message& response) noexcept;

  /// Frees a tag whose request was never sent.
  void release(std::uint32_t tag) noexcept { tags_.erase(tag); }

  /// Frees all tags, because their connection is gone and no response can come.
  void clear() noexcept { tags_.clear(); }

  [[nodiscard]] MatchtagState state(std::uint32_t tag) const noexcept;
  /// Number of tags in use, the cancelled ones included.
  [[nodiscard]] std::size_t size() const noexcept { return tags_.size(); }

 private:
  std::size_t limit_;
  std::uint32_t largest_;
  std::uint32_t last_ = 0;
  std::unordered_map<std::uint32_t, MatchtagState> tags_;
};

}  // namespace resourced::proto
