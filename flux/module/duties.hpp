// What every module of a Flux instance answers: ping, counts of messages, resource usage, debug flags, and
// that it does not know a method, or who asks may not.
#pragma once

#include <cstdint>
#include <functional>
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

  /// May throw Error, which refuses the request; nlohmann::json::exception refuses it with EPROTO.
  using Answer = std::function<void(const proto::Message&)>;
  /// A method of the service `resource`.
  void add(std::string method, Right right, Answer answer);

  /// Answers a request. False for the one that ends the module.
  [[nodiscard]] bool take(const proto::Message& message);

 private:
  struct Method {
    Right right;
    Answer answer;
  };

  void answer(const proto::Message& request);
  void debug(const proto::Message& request);

  Channel& channel_;
  const Welcome& welcome_;
  std::map<std::string, Method, std::less<>> methods_;
  std::int64_t debug_flags_ = 0;
};

}  // namespace resourced::flux::module
