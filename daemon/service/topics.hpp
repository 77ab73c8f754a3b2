// The table of topics that the daemon serves: the right, the bounds, the kind of answer and the handler of
// each.
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
  /// When its condition is met. Until then resource.disconnect can end it.
  later,
  /// When the stream is ended. The request must have the streaming flag.
  stream,
};

/// Bounds of a payload, as parsing takes time and memory in proportion to its bytes and its JSON values.
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
