// The topics that every module of a Flux instance answers: ping, counts of messages, resource usage and debug
// flags. Refuses unknown methods, and requests without the right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "flux/module/channel.hpp"
#include "flux/module/welcome.hpp"

namespace resourced::flux::module {

enum class Right : std::uint8_t { owner, user, anybody };

class Duties {
 public:
  Duties(Channel& channel, const Welcome& welcome);

  /// Handles a request. May throw Error, which refuses the request; nlohmann::json::exception refuses it with
  /// EPROTO.
  using Answer = std::function<void(const proto::Message&)>;
  static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();
  /// Adds a method of the service `resource`. A request that is not from the owner, and has a payload of more
  /// than `longest` bytes, is refused with EMSGSIZE.
  void add(std::string method, Right right, Answer answer, std::size_t longest = unbounded);

  /// Whether this object answers requests with this topic.
  [[nodiscard]] bool serves(std::string_view topic) const;
  /// Answers a request or handles an event. Returns false for the shutdown request, which ends the module.
  [[nodiscard]] bool take(const proto::Message& message);

 private:
  struct Method {
    Right right;
    Answer answer;
    std::size_t longest = 0;
  };

  [[nodiscard]] const Method* find(std::string_view topic) const;
  void answer(const proto::Message& request);
  void debug(const proto::Message& request);

  Channel& channel_;
  const Welcome& welcome_;
  std::map<std::string, Method, std::less<>> methods_;
  std::int64_t debug_flags_ = 0;
};

}  // namespace resourced::flux::module
