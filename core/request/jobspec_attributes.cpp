#include "core/request/jobspec_attributes.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/request/constraint.hpp"
#include "core/request/json_check.hpp"

namespace resourced {

namespace {

using nlohmann::json;

void check_duration(const json& duration, const JsonPath& path) {
  if (!duration.is_number()) path.fail("must be a number of seconds");
  if (duration.get<double>() < 0) path.fail("must not be negative");
  if (!std::isfinite(duration.get<double>())) path.fail("must be finite: 0 is without limit");
}

void check_system(const json& system, const JsonPath& path) {
  require_object(system, path);
  if (const auto it = system.find("duration"); it != system.end()) check_duration(*it, path / "duration");
  if (const auto it = system.find("cwd"); it != system.end()) (void)require_string(*it, path / "cwd");
  if (const auto it = system.find("environment"); it != system.end())
    require_object(*it, path / "environment");
  if (const auto it = system.find("constraints"); it != system.end()) {
    (void)Constraint::from_json(*it, path / "constraints");
  }
}

}  // namespace

void check_attributes(const json& attributes, const JsonPath& path) {
  require_object(attributes, path);
  refuse_other_keys(attributes, {"system", "user"}, "attributes", path);
  if (const auto it = attributes.find("system"); it != attributes.end()) check_system(*it, path / "system");
  if (const auto it = attributes.find("user"); it != attributes.end()) require_object(*it, path / "user");
}

}  // namespace resourced
