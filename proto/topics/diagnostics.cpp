#include "proto/topics/diagnostics.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"
#include "proto/message.hpp"

namespace resourced::proto::topics {
namespace {

using nlohmann::json;

constexpr std::size_t hop_size = 8;

// Returns a hop for an answer. The sender chooses the bytes of routes: those that are not printable ASCII are
// shown as `*`.
std::string hop(std::string_view route) {
  std::string text(route.substr(0, hop_size));
  std::ranges::replace_if(
      text, [](char c) { return c <= ' ' || c > '~' || c == '!'; }, '*');
  return text;
}

// Returns an upper bound of the values in a JSON text, without parsing it: each value but the first follows
// one of these characters. Flux pads pings with letters, which do not count.
std::size_t count_values(std::string_view text) {
  const auto leads = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };
  return static_cast<std::size_t>(std::ranges::count_if(text, leads)) + 1;
}

// A counter at the top of the answer, with its key.
struct Counter {
  const char* key;
  std::uint64_t StatsAnswer::*value;
};
constexpr Counter counters[] = {
    {"events", &StatsAnswer::events},
    {"commits", &StatsAnswer::commits},
    {"clients", &StatsAnswer::clients},
    {"dropped-clients", &StatsAnswer::dropped_clients},
    {"subscribers", &StatsAnswer::subscribers},
    {"merged-deltas", &StatsAnswer::merged_deltas},
    {"journal-consumers", &StatsAnswer::journal_consumers},
    {"dropped-frames", &StatsAnswer::dropped_frames},
    {"refused-connections", &StatsAnswer::refused_connections},
    {"denied-requests", &StatsAnswer::denied_requests},
    {"limited-requests", &StatsAnswer::limited_requests},
    {"memory", &StatsAnswer::memory},
};

struct Longest {
  const char* key;
  StatsAnswer::Longest StatsAnswer::*value;
};
constexpr Longest longest[] = {
    {"longest-hold", &StatsAnswer::longest_hold},
    {"longest-wait", &StatsAnswer::longest_wait},
};

std::uint64_t required_count(const json& payload, std::string_view key) {
  const json& value = required_member(payload, key);
  if (!value.is_number_unsigned()) throw Error(EPROTO, fmt::format("{} must be a count", key));
  return value.get<std::uint64_t>();
}

}  // namespace

json encode_ping(std::uint64_t sequence) { return {{"seq", sequence}}; }

std::string answer_ping(const Message& request, std::uint64_t connection) {
  if (request.has(flag::payload) && count_values(request.text()) > max_ping_values) {
    throw Error(EMSGSIZE, fmt::format("{}: more than {} values", request.topic, max_ping_values));
  }
  json answer = parse_optional_object(request);
  std::string route;
  for (auto from = request.routes.rbegin(); from != request.routes.rend(); ++from) route += hop(*from) + '!';
  route += fmt::format("{:08x}!{}", connection, hop(split_topic(request.topic).service));
  answer["route"] = std::move(route);
  answer["userid"] = request.userid;
  answer["rolemask"] = request.rolemask;
  answer["rank"] = 0;
  return answer.dump();
}

std::optional<std::uint64_t> parse_ping_answer(const json& payload) {
  const auto sequence = payload.find("seq");
  if (sequence == payload.end() || !sequence->is_number_unsigned()) return std::nullopt;
  return sequence->get<std::uint64_t>();
}

std::string encode_stats(const StatsAnswer& stats) {
  json payload = json::object();
  json& requests = payload["requests"] = json::object();
  for (const auto& [topic, outcomes] : stats.requests) {
    requests[topic] = {{"succeeded", outcomes.succeeded}, {"failed", outcomes.failed}};
  }
  for (const Counter& counter : counters) payload[counter.key] = stats.*counter.value;
  payload["events-per-commit"] = stats.events_per_commit;
  for (const auto& [key, value] : longest)
    payload[key] = {{"topic", (stats.*value).topic}, {"ms", (stats.*value).milliseconds}};
  return payload.dump();
}

StatsAnswer parse_stats(const json& payload) {
  StatsAnswer stats;
  const json& requests = required_object(payload, "requests");
  for (const auto& [topic, outcomes] : requests.items()) {
    (void)required_object(requests, topic);
    stats.requests[topic] = {required_count(outcomes, "succeeded"), required_count(outcomes, "failed")};
  }
  for (const Counter& counter : counters) stats.*counter.value = required_count(payload, counter.key);
  stats.events_per_commit = required_number(payload, "events-per-commit");
  for (const auto& [key, value] : longest) {
    const json& found = required_object(payload, key);
    stats.*value = {required_string(found, "topic"), required_number(found, "ms")};
  }
  return stats;
}

}  // namespace resourced::proto::topics
