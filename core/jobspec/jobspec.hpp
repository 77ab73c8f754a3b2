// Jobspecs (RFC 14, RFC 25): made from a resources list and a command, as `resourcectl jobspec from-shape`
// does, and checked.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/jobspec/resource_list.hpp"
#include "core/json/json_path.hpp"
#include "core/time.hpp"

namespace resourced::jobspec {

/// The parts of a jobspec other than its resources.
struct JobspecProgram {
  /// The command: at least one string.
  std::vector<std::string> command;
  /// Time limit; 0 means none.
  Seconds duration{};
  std::optional<std::string> cwd;
  std::optional<std::map<std::string, std::string>> environment;
};

/// The version of canonical jobspecs in the examples of RFC 14.
inline constexpr int canonical_jobspec_version = 999;

/// Makes a jobspec that runs the command once in each slot: of version 1 if the graph is one of RFC 25,
/// canonical otherwise. Throws Error EINVAL `path: reason` if the jobspec would not be valid, for instance if
/// there is no slot, or an argument that is not UTF-8.
[[nodiscard]] nlohmann::ordered_json make_jobspec(const ResourceGraph& resources,
                                                  const JobspecProgram& program);

// Jobspec version 1 (RFC 25): the request to run one program on nodes, slots, cores and gpus. Checks a
// document that document.hpp has read; feasibility.hpp checks whether an inventory could satisfy it.

/// Editions of RFC 25. The present one, `strict`, requires one task for each slot, or a total of at most the
/// number of slots and at least the number of nodes.
enum class V1Edition { lenient, strict };

/// Checks a jobspec. `exclusive` is accepted in a node, according to the RFC's text, and in a slot, according
/// to its schema. Keys beyond those of the RFC are refused except at the top and in `attributes.system`.
/// Throws Error EINVAL (ERANGE for a constraint past its limits), `resources[0].with[0].count: must be at
/// least 1`.
void check_jobspec_v1(const nlohmann::json& jobspec, V1Edition edition = V1Edition::lenient);

/// Whether version 1 allows a graph: slot>core, node>slot>core, slot>(core,gpu), node>slot>(core,gpu), with
/// integer counts and without keys that its schema lacks.
[[nodiscard]] bool is_v1_graph(const ResourceGraph& resources);

// Canonical jobspec (RFC 14): any number of vertices of any type, and any number of tasks. Checks a document
// that document.hpp has read; feasibility.hpp decides which jobspecs it can judge.

/// Checks a jobspec of any version against the RFC's prose: beyond its schema each task names the label of a
/// slot, per_resource a type in that slot, an environment has strings and nulls. The edition `schema` also
/// refuses all that the schema refuses. Throws Error EINVAL (ERANGE for a constraint past its limits),
/// `tasks[1].count: must have ...`.
void check_canonical_jobspec(const nlohmann::json& jobspec,
                             CanonicalEdition edition = CanonicalEdition::prose);

// Checks of the `attributes` that jobspecs of both kinds have (RFC 14, RFC 25).

/// Checks an `attributes` object: it has only `system` and `user`, which are objects. Of the system
/// attributes it checks duration (a number, not negative), cwd, environment and constraints (RFC 31); the
/// caller checks which of them are required. Throws Error EINVAL `path: reason`.
void check_attributes(const nlohmann::json& attributes, const json_text::JsonPath& path);

/// Checks an environment: its names have strings, or null to unset a variable. Throws Error EINVAL `path:
/// reason`.
void check_environment(const nlohmann::json& environment, const json_text::JsonPath& path);

/// Checks dependencies (RFC 26): a list of objects with at least `scheme` and `value`; for the schema at
/// least one, none twice, each with all four keys and no others. Throws Error EINVAL `path: reason`.
void check_dependencies(const nlohmann::json& dependencies, const json_text::JsonPath& path,
                        CanonicalEdition edition);

}  // namespace resourced::jobspec
