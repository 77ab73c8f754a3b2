#include "agent/health_text.hpp"

#include <cerrno>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "proto/topics/liveness.hpp"

namespace resourced::agent {

std::string write_health_text(const nodes::HealthReport& report) {
  const nodes::HealthReport clean{report.status, proto::topics::health_reason(report.reason)};
  return proto::topics::encode_agent_health({std::nullopt, clean}).dump() + '\n';
}

nodes::HealthReport read_health_text(std::string_view text) {
  if (text.size() > max_health_text) throw Error(EPROTO, "a result of more than 8192 bytes");
  constexpr std::size_t depth = 2;
  constexpr std::size_t most_values = 16;
  const auto read = json_text::read_json(text, depth, json_text::JsonManners::strict, most_values);
  const auto* payload = std::get_if<nlohmann::json>(&read);
  if (payload == nullptr || !payload->is_object()) throw Error(EPROTO, "a result that is not a JSON object");
  return proto::topics::parse_agent_health(*payload).report;
}

}  // namespace resourced::agent
