#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/jobspec/jobspec.hpp"
#include "core/jobspec/resource_list.hpp"
#include "core/json/json_path.hpp"
#include "core/text/quote.hpp"

namespace resourced::jobspec {

using json_text::JsonPath;

namespace {

using nlohmann::json;
/// The slots of a graph by label. The graph must outlive this map.
using Slots = std::map<std::string, const Vertex*, std::less<>>;

void collect_slots(const ResourceGraph& resources, Slots& slots) {
  for (const Vertex& vertex : resources) {
    if (vertex.is_slot()) slots.emplace(*vertex.label, &vertex);
    collect_slots(vertex.with, slots);
  }
}

bool declares_type(const ResourceGraph& resources, const std::string& type) {
  return std::any_of(resources.begin(), resources.end(), [&](const Vertex& vertex) {
    return vertex.type == type || declares_type(vertex.with, type);
  });
}

void check_command(const json& command, const JsonPath& path) {
  if (!command.is_array()) path.fail("must be an array of strings");
  if (command.empty()) path.fail("must have at least one string");
  for (std::size_t i = 0; i < command.size(); ++i) (void)require_string(command[i], path[i]);
}

void check_count(const json& count, const JsonPath& path, const Vertex& slot) {
  require_object(count, path);
  refuse_other_keys(count, {"per_slot", "per_resource", "total"}, "a task count", path);
  if (count.size() != 1) path.fail("must have one of per_slot, per_resource and total");
  const auto kind = count.begin();
  const std::string& key = kind.key();
  const json& value = kind.value();
  const JsonPath place = path / key;
  if (key == "per_resource") {
    require_object(value, place);
    const std::string& type = require_string(require_member(value, "type", place), place / "type");
    if (!declares_type(slot.with, type)) {
      (place / "type")
          .fail(fmt::format("{} is not the type of a resource in slot {}", text::quoted(type),
                            text::quoted(*slot.label)));
    }
    (void)require_positive(require_member(value, "count", place), place / "count");
  } else {
    (void)require_positive(value, place);
  }
}

void check_task_attributes(const json& attributes, const JsonPath& path) {
  require_object(attributes, path);
  for (const auto& [key, value] : attributes.items()) {
    if (key == "environment") {
      check_environment(value, path / key);
    } else {
      (void)require_string(value, path / key);
    }
  }
}

void check_task(const json& task, const JsonPath& path, const Slots& slots) {
  require_object(task, path);
  refuse_other_keys(task, {"command", "slot", "count", "distribution", "attributes"}, "a task", path);
  check_command(require_member(task, "command", path), path / "command");
  const std::string& slot = require_string(require_member(task, "slot", path), path / "slot");
  const auto found = slots.find(slot);
  if (found == slots.end()) {
    (path / "slot").fail(fmt::format("{} is not the label of a slot", text::quoted(slot)));
  }
  check_count(require_member(task, "count", path), path / "count", *found->second);
  if (const auto it = task.find("distribution"); it != task.end()) {
    (void)require_string(*it, path / "distribution");
  }
  if (const auto it = task.find("attributes"); it != task.end())
    check_task_attributes(*it, path / "attributes");
}

}  // namespace

void check_canonical_jobspec(const json& jobspec, CanonicalEdition edition) {
  const JsonPath path;
  require_object(jobspec, JsonPath("jobspec"));
  const json& version = require_member(jobspec, "version", path);
  const json& resources = require_member(jobspec, "resources", path);
  const json& tasks = require_member(jobspec, "tasks", path);
  const json& attributes = require_member(jobspec, "attributes", path);

  if (!version.is_number_integer()) (path / "version").fail("must be an integer");
  const ResourceGraph graph = resources_from_json(resources, ExtraKeys::refused, "resources", edition);
  Slots slots;
  collect_slots(graph, slots);

  const JsonPath place = path / "tasks";
  if (!tasks.is_array()) place.fail("must be an array");
  if (tasks.empty()) place.fail("must have at least one task");
  for (std::size_t i = 0; i < tasks.size(); ++i) check_task(tasks[i], place[i], slots);

  if (attributes.is_null()) return;
  const JsonPath attributes_place = path / "attributes";
  check_attributes(attributes, attributes_place);
  const auto system = attributes.find("system");
  if (system == attributes.end()) return;
  if (const auto it = system->find("dependencies"); it != system->end()) {
    check_dependencies(*it, attributes_place / "system" / "dependencies", edition);
  }
}

}  // namespace resourced::jobspec
