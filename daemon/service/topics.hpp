// The topics that the daemon serves, in one table: what is decided of a request before its handler sees it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "daemon/peers/access.hpp"

namespace resourced::daemon::service {

class Service;
struct Call;

/// When a request of a topic gets its last response.
enum class Answer {
  /// By its handler.
  once,
  /// When what it waits for has happened. Until then it can be cancelled or disconnected.
  later,
  /// When the stream is ended. The request must have the flag for streaming.
  stream,
};

/// Bounds of a payload: parsing takes time and memory in proportion to bytes, and to values out of it.
struct Bound {
  std::size_t bytes;
  /// Added for each target of the inventory.
  std::size_t bytes_a_target;
  /// Arrays and objects included.
  std::size_t values;
};

struct Topic {
  std::string_view name;
  peers::Right right;
  Answer answer;
  Bound bound;
  void (*handle)(Service& service, const Call& call);
};

class Topics {
 public:
  [[nodiscard]] static std::span<const Topic> all() noexcept;
  /// Null for a topic that is not served.
  [[nodiscard]] static const Topic* find(std::string_view name) noexcept;

 private:
  template <auto Group, auto Handler>
  static void call(Service& service, const Call& call);
};

}  // namespace resourced::daemon::service
