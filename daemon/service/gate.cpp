#include "daemon/service/gate.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace resourced::daemon::service {

Error denial(std::string_view topic, peers::Right right) {
  return {EPERM, fmt::format("{} requires the role {}", topic, peers::role_for(right))};
}

Gate::Gate(peers::Access access, const config::Limits& limits, Stats& stats)
    : access_(std::move(access)), limits_(limits), stats_(stats) {}

std::optional<Gate::Refusal> Gate::admit(peers::Clients::Client& client, const proto::Message& request,
                                         std::size_t kept, SteadyTime now) const {
  const auto rate = static_cast<double>(limits_.requests_per_second);
  const double left = client.requests.take(now, {rate, rate}, 1);
  // A debt of one second's requests: the client keeps sending although it is refused.
  if (left < -rate) return Refusal{Error(EBUSY, "it keeps exceeding limits.requests-per-second"), true};
  if (left < 0) {
    return Refusal{
        Error(EBUSY, fmt::format("more than {} requests in a second", limits_.requests_per_second)), false};
  }
  const std::size_t outstanding = client.waiting + client.backlog.size() + kept;
  if (outstanding >= limits_.outstanding_requests && !request.has(proto::flag::noresponse)) {
    return Refusal{Error(EBUSY, fmt::format("{} requests wait already", outstanding)), false};
  }
  return std::nullopt;
}

void Gate::check_right(const peers::Principal& sender, const proto::Message& request, peers::Right right) {
  if (right == peers::Right::none || peers::rights_of_request(sender, request).has(right)) return;
  stats_.denied();
  if (const auto before = denials_.admit()) {
    spdlog::warn("denied {} to {} ({} more since the last such line)", request.topic, sender.name, *before);
  }
  throw denial(request.topic, right);
}

void Gate::check_form(const proto::Message& request, const Topic& topic, std::size_t targets) {
  const std::size_t size = request.payload ? request.payload->size() : 0;
  const std::size_t most = topic.bound.bytes + topic.bound.bytes_a_target * targets;
  if (size > most) {
    throw Error(EMSGSIZE, fmt::format("{}: a payload of {} bytes, more than {}", request.topic, size, most));
  }
  if (topic.answer == Answer::stream && !request.has(proto::flag::streaming)) {
    throw Error(EPROTO, request.topic + ": the request must have the streaming flag");
  }
}

}  // namespace resourced::daemon::service
