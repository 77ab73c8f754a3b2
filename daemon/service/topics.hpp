// The table of topics that the daemon serves, with the right, the bounds, the kind of answer and the handler
// of each, and the checks of a request before its handler: the limits of its client and the row of its topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/time.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/stats.hpp"
#include "proto/message.hpp"

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

/// What a request needs of a cluster.
enum class Needs {
  /// The daemon that leads: others refuse it.
  leader,
  /// A leader whose log commits, as the request changes what the log has.
  commits,
  /// Any daemon that has the log.
  log,
};

/// What a leader does with a request while its log commits nothing. Nobody may see the events that wait for
/// the commit, as it can fail.
enum class Stalled : std::uint8_t {
  /// The answer can tell of them: it waits.
  waits,
  /// So it can, and nobody should wait for it: EAGAIN.
  refused,
  /// The answer tells of none of them, and leaves at once.
  served,
  /// The answer is made of the committed state, and leaves at once.
  from_log,
};

struct Topic {
  std::string_view name;
  peers::Right right;
  Answer answer;
  Bound bound;
  void (*handle)(Service& service, const Call& call);
  /// The right in a Flux instance, if it is an exception to the rule of Gate::right_for(): `none` and `read`
  /// stay, any other right becomes `own`.
  std::optional<peers::Right> in_instance = std::nullopt;
  /// False for a topic of this project's own that has no meaning in an instance of Flux.
  bool served_in_instance = true;
  Needs needs = Needs::leader;
  Stalled stalled = Stalled::waits;

  /// Whether such a request is turned away while the log commits nothing.
  [[nodiscard]] constexpr bool needs_commits() const noexcept {
    return needs == Needs::commits || stalled == Stalled::refused;
  }
};

/// A request as its handler gets it: it is within the limits, and its sender has the right. Valid during the
/// call only.
struct Call {
  proto::ClientId client;
  const proto::Message& request;
  const peers::Principal& sender;
  const Topic& topic;

  /// The payload, bounded by the topic. Throws Error EPROTO as proto::parse_object() and
  /// proto::parse_optional_object() do.
  [[nodiscard]] nlohmann::json object() const;
  [[nodiscard]] nlohmann::json optional_object() const;
  /// The actor of the events that the request causes.
  [[nodiscard]] std::optional<module::Actor> actor() const { return peers::actor_of(sender, request); }
};

class Topics {
 public:
  [[nodiscard]] static std::span<const Topic> all() noexcept;
  /// Null for a topic that is not served.
  [[nodiscard]] static const Topic* find(std::string_view name) noexcept;

 private:
  /// The handler in a group of topics.
  template <auto Group, auto Handler>
  static void call(Service& service, const Call& call);
  /// The handler of a request that is one command to the engine: `Parse` makes the command of the payload.
  template <auto Parse, class Input>
  static void command(Service& service, const Call& call);
};

/// Checks requests before their handlers.
class Gate {
 public:
  Gate(peers::Access access, const config::Limits& limits, Stats& stats)
      : access_(std::move(access)), limits_(limits), stats_(stats) {}

  void set_access(peers::Access access) { access_ = std::move(access); }
  void set_limits(const config::Limits& limits) { limits_ = limits; }
  [[nodiscard]] const peers::Access& access() const noexcept { return access_; }
  [[nodiscard]] const config::Limits& limits() const noexcept { return limits_; }

  /// A request beyond a limit of its client.
  struct Refusal {
    Error error;
    /// The client keeps sending in spite of refusals: disconnect it without an answer.
    bool is_flood;
  };
  /// Counts a request of a client against its limits. `kept` is the number of its requests in the registry.
  /// The clients of an instance have none, as its modules are among them, and the broker has limits for
  /// users.
  [[nodiscard]] std::optional<Refusal> admit(peers::Clients::Client& client, const proto::Message& request,
                                             std::size_t kept, SteadyTime now) const;

  [[nodiscard]] static bool serves(const Topic& topic, const peers::Principal& sender) noexcept {
    return !sender.of_instance || topic.served_in_instance;
  }
  /// The right that a request of this topic requires.
  [[nodiscard]] static peers::Right right_for(const Topic& topic, const peers::Principal& sender) noexcept;
  /// The Error for a sender without it.
  [[nodiscard]] static Error denial(std::string_view topic, peers::Right right,
                                    const peers::Principal& sender);
  /// The Error for a topic that is not served.
  [[nodiscard]] static Error unknown(std::string_view topic, const peers::Principal& sender);

  /// Throws Error EPERM if the request does not have the right, and logs it.
  void check_right(const peers::Principal& sender, const proto::Message& request, peers::Right right);
  /// Throws Error EMSGSIZE for a payload above the bound of its topic with so many `targets`, EPROTO if the
  /// topic streams and the request has no streaming flag. Flux also serves an acquire without it.
  static void check_form(const proto::Message& request, const Topic& topic, const peers::Principal& sender,
                         std::size_t targets);

 private:
  peers::Access access_;
  config::Limits limits_;
  Stats& stats_;
  peers::RateLimit denials_;
};

}  // namespace resourced::daemon::service
