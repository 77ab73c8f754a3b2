#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/constraint/constraint.hpp"
#include "core/jobspec/jobspec.hpp"
#include "core/json/json_path.hpp"

namespace resourced::jobspec {

using json_text::JsonPath;

namespace {

using nlohmann::json;

void check_duration(const json& duration, const JsonPath& path) {
  if (!duration.is_number()) path.fail("must be a number of seconds");
  if (duration.get<double>() < 0) path.fail("must not be negative");
  if (!std::isfinite(duration.get<double>())) path.fail("must be finite: 0 is without limit");
}

/// Checks dependencies against the schema of RFC 26.
void check_dependencies_by_schema(const json& dependencies, const JsonPath& path) {
  if (dependencies.empty()) path.fail("must have at least one dependency (schema)");
  for (std::size_t i = 0; i < dependencies.size(); ++i) {
    const json& dependency = dependencies[i];
    refuse_other_keys(dependency, {"type", "scope", "scheme", "value"}, "a dependency", path[i]);
    const auto one_of = [&](const char* key, std::initializer_list<std::string_view> words) {
      const std::string& word = require_string(require_member(dependency, key, path[i]), path[i] / key);
      if (std::find(words.begin(), words.end(), word) == words.end())
        (path[i] / key).fail(fmt::format("must be one of {} (schema)", fmt::join(words, ", ")));
    };
    one_of("type", {"in", "out", "inout"});
    one_of("scope", {"user", "global"});
  }
  // Sort the texts to find repeats, so that a long list takes little time.
  std::vector<std::string> texts;
  for (const json& dependency : dependencies) texts.push_back(dependency.dump());
  std::sort(texts.begin(), texts.end());
  if (std::adjacent_find(texts.begin(), texts.end()) != texts.end())
    path.fail("must not have the same dependency twice (schema)");
}

void check_system(const json& system, const JsonPath& path) {
  require_object(system, path);
  if (const auto it = system.find("duration"); it != system.end()) check_duration(*it, path / "duration");
  if (const auto it = system.find("cwd"); it != system.end()) (void)require_string(*it, path / "cwd");
  if (const auto it = system.find("environment"); it != system.end())
    check_environment(*it, path / "environment");
  if (const auto it = system.find("constraints"); it != system.end()) {
    (void)constraint::Constraint::from_json(*it, path / "constraints");
  }
}

}  // namespace

void check_environment(const json& environment, const JsonPath& path) {
  require_object(environment, path);
  for (const auto& [name, value] : environment.items()) {
    if (!value.is_null() && !value.is_string()) (path / name).fail("must be a string, or null to unset it");
  }
}

void check_dependencies(const json& dependencies, const JsonPath& path, CanonicalEdition edition) {
  if (!dependencies.is_array()) path.fail("must be an array");
  for (std::size_t i = 0; i < dependencies.size(); ++i) {
    const JsonPath place = path[i];
    require_object(dependencies[i], place);
    for (const char* key : {"scheme", "value"}) {
      (void)require_string(require_member(dependencies[i], key, place), place / key);
    }
  }
  if (edition == CanonicalEdition::schema) check_dependencies_by_schema(dependencies, path);
}

void check_attributes(const json& attributes, const JsonPath& path) {
  require_object(attributes, path);
  refuse_other_keys(attributes, {"system", "user"}, "attributes", path);
  if (const auto it = attributes.find("system"); it != attributes.end()) check_system(*it, path / "system");
  if (const auto it = attributes.find("user"); it != attributes.end()) require_object(*it, path / "user");
}

}  // namespace resourced::jobspec
