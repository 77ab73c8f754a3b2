#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/jobspec/jobspec.hpp"
#include "core/json/json_path.hpp"
#include "core/text/quote.hpp"

namespace resourced::jobspec {

using json_text::JsonPath;

namespace {

using nlohmann::json;

// The parts of the resources against which tasks are checked.
struct Request {
  std::string slot_label;
  std::uint64_t slots_in_node = 0;
  std::optional<std::uint64_t> nodes;

  // The number of slots in total; the largest 64-bit number if the product overflows.
  [[nodiscard]] std::uint64_t slots() const {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(slots_in_node, nodes.value_or(1), &product)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
    return product;
  }
};

const std::string& vertex_type(const json& vertex, const JsonPath& path) {
  require_object(vertex, path);
  return require_string(require_member(vertex, "type", path), path / "type");
}

// Checks the keys that vertices of all types share. Returns the count.
std::uint64_t check_vertex(const json& vertex, const JsonPath& path) {
  if (const auto it = vertex.find("unit"); it != vertex.end()) (void)require_string(*it, path / "unit");
  if (const auto it = vertex.find("exclusive"); it != vertex.end()) {
    (void)require_boolean(*it, path / "exclusive");
  }
  return require_positive(require_member(vertex, "count", path), path / "count");
}

const json& children(const json& vertex, const JsonPath& path) {
  const json& with = require_member(vertex, "with", path);
  if (!with.is_array()) (path / "with").fail("must be an array");
  return with;
}

void check_leaf(const json& leaf, const JsonPath& path) {
  const std::string& type = vertex_type(leaf, path);
  if (type != "core" && type != "gpu") {
    (path / "type").fail(fmt::format("must be core or gpu, not {}", text::quoted(type)));
  }
  refuse_other_keys(leaf, {"type", "count", "unit"}, fmt::format("a {}", type), path);
  (void)check_vertex(leaf, path);
}

void check_slot(const json& slot, const JsonPath& path, Request& request) {
  refuse_other_keys(slot, {"type", "count", "unit", "label", "exclusive", "with"}, "a slot", path);
  request.slots_in_node = check_vertex(slot, path);
  request.slot_label = require_string(require_member(slot, "label", path), path / "label");

  const json& with = children(slot, path);
  const JsonPath place = path / "with";
  const auto count_of = [&with](const char* type) {
    return std::count_if(with.begin(), with.end(), [&](const json& leaf) { return leaf["type"] == type; });
  };
  for (std::size_t i = 0; i < with.size(); ++i) check_leaf(with[i], place[i]);
  if (count_of("core") == 0) place.fail("must have a core");
  for (const char* type : {"core", "gpu"}) {
    if (count_of(type) > 1) place.fail(fmt::format("must have the type {} once", type));
  }
}

void check_node(const json& node, const JsonPath& path, Request& request) {
  refuse_other_keys(node, {"type", "count", "unit", "exclusive", "with"}, "a node", path);
  request.nodes = check_vertex(node, path);

  const json& with = children(node, path);
  const JsonPath place = path / "with";
  if (with.size() != 1) place.fail("must have exactly one slot");
  const std::string& type = vertex_type(with[0], place[0]);
  if (type != "slot") (place[0] / "type").fail(fmt::format("must be slot, not {}", text::quoted(type)));
  check_slot(with[0], place[0], request);
}

Request check_resources(const json& resources, const JsonPath& path) {
  if (!resources.is_array()) path.fail("must be an array");
  if (resources.size() != 1) path.fail("must have exactly one vertex");
  Request request;
  const json& root = resources[0];
  const std::string& type = vertex_type(root, path[0]);
  if (type == "node") {
    check_node(root, path[0], request);
  } else if (type == "slot") {
    check_slot(root, path[0], request);
  } else {
    (path[0] / "type").fail(fmt::format("must be node or slot, not {}", text::quoted(type)));
  }
  return request;
}

void check_v1_command(const json& command, const JsonPath& path) {
  if (command.is_string()) return;
  if (!command.is_array()) path.fail("must be an array of strings, or a string");
  if (command.empty()) path.fail("must have at least one string");
  for (std::size_t i = 0; i < command.size(); ++i) (void)require_string(command[i], path[i]);
}

void check_task_count(const json& count, const JsonPath& path, const Request& request, V1Edition edition) {
  require_object(count, path);
  refuse_other_keys(count, {"per_slot", "total"}, "a task count", path);
  if (count.size() != 1) path.fail("must have either per_slot or total");
  const auto kind = count.begin();
  const std::string& key = kind.key();
  const json& value = kind.value();
  const JsonPath place = path / key;
  const std::uint64_t number = require_positive(value, place);
  if (edition == V1Edition::lenient) return;

  if (key == "per_slot") {
    if (number != 1) place.fail("must be 1");
    return;
  }
  if (number > request.slots()) {
    place.fail(fmt::format("must be at most {}, the number of slots", request.slots()));
  }
  if (request.nodes && number < *request.nodes) {
    place.fail(fmt::format("must be at least {}, the number of nodes", *request.nodes));
  }
}

void check_tasks(const json& tasks, const JsonPath& path, const Request& request, V1Edition edition) {
  if (!tasks.is_array()) path.fail("must be an array");
  if (tasks.size() != 1) path.fail("must have exactly one task");
  const json& task = tasks[0];
  const JsonPath place = path[0];
  require_object(task, place);
  refuse_other_keys(task, {"command", "slot", "count"}, "a task", place);
  check_v1_command(require_member(task, "command", place), place / "command");
  const std::string& slot = require_string(require_member(task, "slot", place), place / "slot");
  if (slot != request.slot_label) {
    (place / "slot").fail(fmt::format("must be the label of the slot, {}", text::quoted(request.slot_label)));
  }
  check_task_count(require_member(task, "count", place), place / "count", request, edition);
}

bool is_leaf(const Vertex& vertex) {
  return (vertex.type == "core" || vertex.type == "gpu") && !vertex.label && !vertex.exclusive &&
         vertex.with.empty();
}

bool is_slot(const Vertex& vertex) {
  const auto& with = vertex.with;
  if (!vertex.is_slot() || with.empty() || with.size() > 2) return false;
  if (!std::all_of(with.begin(), with.end(), is_leaf)) return false;
  if (with.size() == 2) return with[0].type != with[1].type;
  return with[0].type == "core";
}

// Whether a vertex and those below it have only what the schema allows: an integer count, no id and no
// further keys.
bool is_plain(const Vertex& vertex) {
  return vertex.count.kind() == text::Count::Kind::integer && !vertex.id && !vertex.extra &&
         std::all_of(vertex.with.begin(), vertex.with.end(), is_plain);
}

}  // namespace

void check_jobspec_v1(const json& jobspec, V1Edition edition) {
  const JsonPath path;
  require_object(jobspec, JsonPath("jobspec"));
  const json& version = require_member(jobspec, "version", path);
  const json& resources = require_member(jobspec, "resources", path);
  const json& tasks = require_member(jobspec, "tasks", path);
  const json& attributes = require_member(jobspec, "attributes", path);

  if (!version.is_number_integer() || version != 1) (path / "version").fail("must be the number 1");
  const Request request = check_resources(resources, path / "resources");
  check_tasks(tasks, path / "tasks", request, edition);

  const JsonPath place = path / "attributes";
  check_attributes(attributes, place);
  const json& system = require_member(attributes, "system", place);
  (void)require_member(system, "duration", place / "system");
  if (const auto it = system.find("dependencies"); it != system.end() && edition == V1Edition::strict)
    check_dependencies(*it, place / "system" / "dependencies", CanonicalEdition::schema);
}

bool is_v1_graph(const ResourceGraph& resources) {
  if (resources.size() != 1 || !is_plain(resources[0])) return false;
  const Vertex& root = resources[0];
  if (root.type != "node") return is_slot(root);
  return !root.label && root.with.size() == 1 && is_slot(root.with[0]);
}

}  // namespace resourced::jobspec
