#include "proto/topics/feasibility.hpp"

#include <cerrno>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/topics/members.hpp"

namespace resourced::proto {

nlohmann::json encode_feasibility(const nlohmann::json& jobspec) { return {{"jobspec", jobspec}}; }

const nlohmann::json& parse_feasibility(const nlohmann::json& payload) {
  const nlohmann::json& jobspec = required_member(payload, "jobspec");
  if (!jobspec.is_object()) throw Error(EPROTO, "jobspec must be an object");
  return jobspec;
}

}  // namespace resourced::proto
