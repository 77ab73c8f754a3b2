// Payloads of questions about the daemon itself: SERVICE.ping, by which clients measure the round trip to a
// service, as `flux ping` of Flux 0.88 sends and reads it, and this project's resource.stats-get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace resourced::proto {
struct Message;
}

namespace resourced::proto::topics {

inline constexpr std::size_t max_ping_values = 1024;

/// Returns a ping of this project's tools: `{"seq": N}`. Any object, or no payload at all, is a ping.
[[nodiscard]] nlohmann::json encode_ping(std::uint64_t sequence);
/// Returns the response to a ping, `{"route": STRING, "userid": N, "rolemask": N, "rank": 0, ...}`: the keys
/// of the request's object, and `route` (its hops from the origin on, the last one this service, each cut to
/// 8 characters, with `!` between them), `userid` and `rolemask` of the request as stamped, and `rank`: 0,
/// because the one daemon takes the place of rank 0 of an instance. These four replace keys of the request
/// with the same name. `connection` identifies the sender's connection: it is the last hop before the
/// service. Error EPROTO if the payload is not an object, EMSGSIZE if it may have more than `max_ping_values`
/// values: to read 64 KiB of empty arrays takes milliseconds.
[[nodiscard]] std::string answer_ping(const Message& request, std::uint64_t connection);
/// Returns the sequence number of the ping that a response answers; nothing if it has none.
[[nodiscard]] std::optional<std::uint64_t> parse_ping_answer(const nlohmann::json& payload);

/// The response to resource.stats-get: `{"requests": {TOPIC: {"succeeded": N, "failed": N}}, "events": N,
/// "commits": N, "events-per-commit": NUMBER, "clients": N, "dropped-clients": N, "subscribers": N,
/// "merged-deltas": N, "journal-consumers": N, "dropped-frames": N, "refused-connections": N,
/// "denied-requests": N, "limited-requests": N, "longest-hold": {"topic": STRING, "ms": NUMBER},
/// "longest-wait": {"topic": STRING, "ms": NUMBER}, "memory": N}`.
struct StatsAnswer {
  struct Outcomes {
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;
    friend bool operator==(const Outcomes&, const Outcomes&) = default;
  };
  std::map<std::string, Outcomes> requests;
  /// Number of applied events; resource.stats-clear does not reset it.
  std::uint64_t events = 0;
  std::uint64_t commits = 0;
  double events_per_commit = 0;
  std::uint64_t clients = 0;
  std::uint64_t dropped_clients = 0;
  std::uint64_t subscribers = 0;
  std::uint64_t merged_deltas = 0;
  std::uint64_t journal_consumers = 0;
  std::uint64_t dropped_frames = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t denied_requests = 0;
  std::uint64_t limited_requests = 0;
  struct Longest {
    std::string topic;
    double milliseconds = 0;
  };
  /// The longest time that one turn of the loop took, and the topic or part of the daemon that took it.
  Longest longest_hold;
  /// The longest time that a response waited for a commit, and its topic.
  Longest longest_wait;
  /// Resident memory in bytes; 0 where the kernel does not report it.
  std::uint64_t memory = 0;
};
[[nodiscard]] std::string encode_stats(const StatsAnswer& stats);
/// Reads the response to resource.stats-get. Error EPROTO for a key that is missing or has the wrong type.
[[nodiscard]] StatsAnswer parse_stats(const nlohmann::json& payload);

}  // namespace resourced::proto::topics
