// Topics of RPCs (RFC 3, RFC 6): SERVICE.METHOD, and the two that end requests.
#pragma once

#include <optional>
#include <string_view>

namespace resourced::proto {

struct TopicName {
  /// The first word.
  std::string_view service;
  /// The other words, with the periods between them; empty if there are none.
  std::string_view method;
};

/// Views into `topic`, split at the first period.
[[nodiscard]] TopicName split_topic(std::string_view topic) noexcept;

/// `resource.acquire-cancel` -> `resource.acquire`; nothing if the topic is not a cancellation.
[[nodiscard]] std::optional<std::string_view> cancelled_topic(std::string_view topic) noexcept;

/// True for `SERVICE.disconnect`.
[[nodiscard]] bool is_disconnect(std::string_view topic) noexcept;

}  // namespace resourced::proto
