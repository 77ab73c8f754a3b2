// Checks of a request before its handler: the limits of its client, the right that its topic requires, and
// the size of its payload.
#pragma once

#include <cstddef>
#include <optional>

#include "config/config.hpp"
#include "core/error.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/topics.hpp"
#include "daemon/transport/transport.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

class Gate {
 public:
  Gate(peers::Access access, const config::Limits& limits, Stats& stats);

  void set_access(peers::Access access) { access_ = std::move(access); }
  void set_limits(const config::Limits& limits) { limits_ = limits; }
  [[nodiscard]] const peers::Access& access() const noexcept { return access_; }

  /// A request beyond a limit of its client.
  struct Refusal {
    Error error;
    /// The client keeps sending in spite of refusals: disconnect it without an answer.
    bool is_flood;
  };
  /// Counts a request of a client against its limits. `kept` is the number of its requests in the registry.
  [[nodiscard]] std::optional<Refusal> admit(peers::Clients::Client& client, const proto::Message& request,
                                             std::size_t kept, SteadyTime now) const;

  /// Throws Error EPERM if the request does not have the right, and logs it.
  void check_right(const peers::Principal& sender, const proto::Message& request, peers::Right right);
  /// Throws Error EMSGSIZE for a payload above the bound of its topic with so many `targets`, EPROTO if the
  /// topic streams and the request has no streaming flag.
  static void check_form(const proto::Message& request, const Topic& topic, std::size_t targets);

 private:
  peers::Access access_;
  config::Limits limits_;
  Stats& stats_;
  peers::RateLimit denials_;
};

/// The Error for a sender without the right that a topic requires.
[[nodiscard]] Error denial(std::string_view topic, peers::Right right);

}  // namespace resourced::daemon::service
