// The matchtags of a client's requests (RFC 6): unique among those that a response may still come for. What a
// response means to whom is left to the caller.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "proto/message.hpp"

namespace resourced::proto {

enum class MatchtagState : std::uint8_t {
  /// Not out: a response that carries it is a stray one.
  unused,
  /// Someone waits for the response.
  pending,
  /// No one waits any more, but the last response has not come yet.
  cancelled,
};

class MatchtagPool {
 public:
  static constexpr std::size_t default_limit = 65536;

  /// `limit`: how many tags may be out at a time. `largest`: tags are 1 to this, in turn; no less than the
  /// limit.
  explicit MatchtagPool(std::size_t limit = default_limit,
                        std::uint32_t largest = std::numeric_limits<std::uint32_t>::max()) noexcept
      : limit_(limit), largest_(largest) {
    assert(limit <= largest);
  }

  /// The next tag in turn that is not out, never 0. Error EAGAIN if the limit is reached.
  std::uint32_t allocate();

  /// The request is of no more interest. Its tag stays out until its last response. False if it is not
  /// pending.
  bool cancel(std::uint32_t tag) noexcept;

  /// Takes note of a response, and frees its tag if it is the last one. Returns the state of the tag before:
  /// only the response to a pending one is for someone.
  MatchtagState receive(const Message& response) noexcept;

  /// Frees a tag whose request was never sent.
  void release(std::uint32_t tag) noexcept { tags_.erase(tag); }

  /// Frees all tags: with their connection gone no response can come.
  void clear() noexcept { tags_.clear(); }

  [[nodiscard]] MatchtagState state(std::uint32_t tag) const noexcept;
  /// How many are out, the cancelled ones included.
  [[nodiscard]] std::size_t size() const noexcept { return tags_.size(); }

 private:
  std::size_t limit_;
  std::uint32_t largest_;
  std::uint32_t last_ = 0;
  std::unordered_map<std::uint32_t, MatchtagState> tags_;
};

}  // namespace resourced::proto
