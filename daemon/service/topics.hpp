// The table of topics that the daemon serves, with the right, the bounds, the kind of answer and the handler
// of each, and the checks of a request before its handler: the limits of its client and the row of its topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json_fwd.hpp>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/time.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/stats.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

struct Call;
struct Groups;

/// When a request of a topic gets its last response.
enum class Answer {
  /// The handler sends it.
  once,
  /// Never: the request ends other requests, and these get their last responses.
  none,
  /// When the condition of the request is met. Until then resource.disconnect can end it.
  later,
  /// When the stream ends. The request must have the streaming flag.
  stream,
};

/// Limits of a payload, as parsing takes time and memory in proportion to its bytes and its JSON values.
struct Bound {
  std::size_t bytes = 0;
  /// Further bytes for each target of the inventory.
  std::size_t bytes_a_target = 0;
  /// Maximum number of JSON values, arrays and objects included.
  std::size_t values = proto::max_request_values;
};

/// The limits of most payloads.
inline constexpr Bound small{.bytes = std::size_t{16} << 10};

/// The daemon of a cluster that a request needs.
enum class Needs {
  /// A daemon that leads or is in no cluster: standbys refuse the request.
  leader,
  /// A leader whose log commits, as the request changes the log.
  commits,
  /// Any daemon that has the log.
  log,
};

/// The state that the answers of a topic show, and so when they leave.
enum class Shows : std::uint8_t {
  /// All events: an answer leaves once they are committed.
  all_events,
  /// The committed events: an answer leaves at once, unless the client itself has caused an event that is not
  /// committed.
  committed,
  /// No event: an answer leaves at once.
  nothing,
};

/// The content of a request that changes the ledger, or why it cannot be read.
using Content = std::variant<module::LedgerCommand, Error>;

struct Topic {
  std::string_view name;
  void (*handle)(Groups& groups, const Call& call) = nullptr;
  /// Makes the command of a payload, for a topic that changes the ledger. Returns false if the text is not a
  /// JSON object, and throws Error for what it refuses.
  bool (*read)(json_text::JsonReader& reader, module::LedgerCommand& out) = nullptr;
  peers::Right right = peers::Right::none;
  Answer answer = Answer::once;
  Bound bound = small;
  Needs needs = Needs::leader;
  Shows shows = Shows::all_events;
  /// An operator may send it as well.
  bool is_for_admins = false;
  /// The topic changes only the targets that its payload names, so a key that is bound to hosts may send it.
  /// The handler checks the targets.
  bool names_targets = false;
  /// False for a topic of this project that has no meaning in a Flux instance.
  bool in_instance = true;
  /// The right in a Flux instance, if it is an exception to the rule of Gate::right_for(): `none` and `read`
  /// stay, any other right becomes `own`.
  std::optional<peers::Right> right_in_instance = std::nullopt;

  /// Returns whether a request of this topic may be pending after its handler.
  [[nodiscard]] constexpr bool is_kept() const noexcept {
    return answer == Answer::later || answer == Answer::stream;
  }
  /// Reads the payload of a request of a topic with `read`. May be called from any thread.
  [[nodiscard]] Content content_of(const proto::Message& request) const;
};

/// A request as its handler gets it: it is within the limits, and its sender has the right. Valid during the
/// call only.
struct Call {
  proto::ClientId client;
  const proto::Message& request;
  const peers::Principal& sender;
  const Topic& topic;
  /// The content of a large request, which was read beside the loop (LargeRequests). Null for others.
  Content* content = nullptr;

  /// Returns the payload, bounded by the topic. Throws Error EPROTO as proto::parse_object() and
  /// proto::parse_optional_object() do.
  [[nodiscard]] nlohmann::json object() const;
  [[nodiscard]] nlohmann::json optional_object() const;
  /// Returns the command of a topic with `read`, once. Throws its Errors, and those of object().
  [[nodiscard]] module::LedgerCommand command() const;
  /// Returns the actor of the events that the request causes.
  [[nodiscard]] std::optional<module::Actor> actor() const { return peers::actor_of(sender, request); }
};

class Topics {
 public:
  [[nodiscard]] static std::span<const Topic> all() noexcept;
  /// Returns the row of a topic, or null if it is not served.
  [[nodiscard]] static const Topic* find(std::string_view name) noexcept;
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

  /// The refusal of a request beyond a limit of its client.
  struct Refusal {
    Error error;
    /// The client keeps sending in spite of refusals: disconnect it without an answer.
    bool is_flood;
  };
  /// Counts a request of a client against its limits. `kept` is the number of its requests in the registry.
  /// Clients of an instance have no limits here, as its modules are among them, and the broker limits users.
  [[nodiscard]] std::optional<Refusal> admit(peers::Clients::Client& client, const proto::Message& request,
                                             std::size_t kept, SteadyTime now) const;

  [[nodiscard]] static bool serves(const Topic& topic, const peers::Principal& sender) noexcept {
    return !sender.of_instance || topic.in_instance;
  }
  /// Returns the right that a request of this topic requires.
  [[nodiscard]] static peers::Right right_for(const Topic& topic, const peers::Principal& sender) noexcept;
  /// Returns the Error for a sender without this right.
  [[nodiscard]] static Error denial(std::string_view topic, peers::Right right,
                                    const peers::Principal& sender);
  /// Returns the Error for a sender whose key is bound to hosts, if the topic changes more than the targets
  /// that a request names; nothing for others.
  [[nodiscard]] static std::optional<Error> unbound(const Topic& topic, const peers::Principal& sender);
  /// Returns the Error for a topic that is not served.
  [[nodiscard]] static Error unknown(std::string_view topic, const peers::Principal& sender);

  /// Throws Error EPERM, and logs it, if the sender of the request does not have the right.
  void check_right(const peers::Principal& sender, const proto::Message& request, peers::Right right);
  /// Throws the Error of unbound(), if there is one, and logs it.
  void check_bound(const peers::Principal& sender, const proto::Message& request, const Topic& topic);
  /// Throws Error EMSGSIZE for a payload above the limit of its topic with this number of `targets`, EPROTO
  /// if the topic streams and the request has no streaming flag. An acquire in a Flux instance needs no flag,
  /// as in Flux.
  static void check_form(const proto::Message& request, const Topic& topic, const peers::Principal& sender,
                         std::size_t targets);

 private:
  [[noreturn]] void deny(const peers::Principal& sender, const proto::Message& request, const Error& error);

  peers::Access access_;
  config::Limits limits_;
  Stats& stats_;
  peers::RateLimit denials_;
};

}  // namespace resourced::daemon::service
