#include "core/feasibility/request.hpp"

#include <cerrno>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/jobspec/resource_list.hpp"
#include "core/json/json_path.hpp"
#include "core/json/reader.hpp"

namespace resourced::feasibility {

using constraint::Budget;
using constraint::Constraint;
using json_text::JsonFault;
using json_text::JsonPath;
using nlohmann::json;

namespace {

/// Returns a member; null if it is null or missing.
const json* member_at(const json* parent, const char* key) {
  if (parent == nullptr) return nullptr;
  const auto found = parent->find(key);
  return found == parent->end() || found->is_null() ? nullptr : &*found;
}

/// Returns a member that is an object; null if it is null or missing.
const json* object_at(const json* parent, const char* key, const JsonPath& path) {
  const json* const found = member_at(parent, key);
  if (found != nullptr && !found->is_object()) path.fail("must be an object");
  return found;
}

const json* system_attributes(const json& jobspec) {
  const JsonPath path("attributes");
  return object_at(object_at(&jobspec, "attributes", path), "system", path / "system");
}

Constraint constraint_of(const json& jobspec, Budget& budget) {
  const JsonPath attributes("attributes");
  const JsonPath system = attributes / "system";
  const JsonPath path = system / "constraints";
  const json* const constraints = object_at(system_attributes(jobspec), "constraints", path);
  return constraints == nullptr ? Constraint() : Constraint::from_json(*constraints, path, budget);
}

Seconds duration_of(const json& jobspec) {
  const json* const duration = member_at(system_attributes(jobspec), "duration");
  if (duration == nullptr) return {};
  if (!duration->is_number() || *duration < 0)
    throw Error(EINVAL, "attributes.system.duration: must be a number of seconds, 0 or more");
  return Seconds(duration->get<double>());
}

}  // namespace

Request parse_request(std::string_view jobspec) {
  if (jobspec.size() > max_jobspec_bytes) {
    throw Error(EFBIG,
                fmt::format("a jobspec of {} bytes is longer than {}", jobspec.size(), max_jobspec_bytes));
  }
  const auto read = json_text::read_json(jobspec, max_jobspec_depth, json_text::JsonManners::unique_keys);
  if (const auto* fault = std::get_if<JsonFault>(&read))
    throw Error(EINVAL, fmt::format("jobspec: cannot be read as JSON at byte {}", fault->at));
  const auto& document = std::get<json>(read);
  Budget unlimited;
  Request request = read_request(document, unlimited);
  request.duration = duration_of(document);
  return request;
}

Request read_request(const json& jobspec, Budget& budget) {
  if (!jobspec.is_object()) throw Error(EINVAL, "jobspec: must be an object");
  const auto list = jobspec.find("resources");
  if (list == jobspec.end()) throw Error(EINVAL, "resources: is missing");
  return {resources_from_json(*list, jobspec::ExtraKeys::allowed), constraint_of(jobspec, budget)};
}

}  // namespace resourced::feasibility
