#include "core/jobspec/jobspec.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/json_path.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::jobspec {

using json_text::JsonPath;

namespace {

using nlohmann::ordered_json;

void add_tasks(const ResourceGraph& resources, const std::vector<std::string>& command, ordered_json& tasks) {
  for (const Vertex& vertex : resources) {
    if (vertex.is_slot()) {
      tasks.push_back(
          {{"command", command}, {"slot", vertex.label.value_or("")}, {"count", {{"per_slot", 1}}}});
    }
    add_tasks(vertex.with, command, tasks);
  }
}

// Refuses text that is not UTF-8, as a command line and its environment may have it, because JSON cannot hold
// it.
void require_utf8(const JobspecProgram& program) {
  const auto check = [](std::string_view text, const JsonPath& path) {
    if (json_text::find_invalid_utf8(text)) path.fail(text::quoted(text) + " is not UTF-8");
  };
  const JsonPath command("command");
  for (std::size_t i = 0; i < program.command.size(); ++i) check(program.command[i], command[i]);
  if (program.cwd) check(*program.cwd, JsonPath("cwd"));
  if (!program.environment) return;
  const JsonPath environment("environment");
  for (const auto& [name, value] : *program.environment) {
    check(name, environment);
    check(value, environment / name);
  }
}

ordered_json system_attributes(const JobspecProgram& program) {
  ordered_json system = {{"duration", to_number(program.duration)}};
  if (program.cwd) system["cwd"] = *program.cwd;
  if (program.environment) system["environment"] = *program.environment;
  return system;
}

}  // namespace

ordered_json make_jobspec(const ResourceGraph& resources, const JobspecProgram& program) {
  require_utf8(program);
  const bool v1 = is_v1_graph(resources);
  ordered_json tasks = ordered_json::array();
  add_tasks(resources, program.command, tasks);
  if (tasks.empty()) throw Error(EINVAL, "resources: must have a slot to run the command in");

  ordered_json jobspec = {{"version", v1 ? 1 : canonical_jobspec_version},
                          {"resources", resources_to_json(resources)},
                          {"tasks", std::move(tasks)},
                          {"attributes", {{"system", system_attributes(program)}}}};
  if (v1) {
    check_jobspec_v1(jobspec, V1Edition::strict);
  } else {
    check_canonical_jobspec(jobspec);
  }
  return jobspec;
}

}  // namespace resourced::jobspec
