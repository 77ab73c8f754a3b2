// Makes a jobspec from a resources list and a command, as `resourcectl jobspec from-shape` does. Its checks
// are those of jobspec_v1.hpp and jobspec_canonical.hpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/jobspec/resource_graph.hpp"
#include "core/time.hpp"

namespace resourced {

/// What a jobspec says beyond its resources.
struct JobspecProgram {
  /// At least one string.
  std::vector<std::string> command;
  /// 0 is without limit.
  Seconds duration{};
  std::optional<std::string> cwd;
  std::optional<std::map<std::string, std::string>> environment;
};

/// The version that RFC 14's examples of canonical jobspecs have.
inline constexpr int canonical_jobspec_version = 999;

/// A jobspec that runs the command once in each slot: of version 1 if the graph is one of RFC 25, canonical
/// otherwise. Throws Error EINVAL `path: reason` if it would not be valid, for instance if there is no slot,
/// or an argument that is not UTF-8.
[[nodiscard]] nlohmann::ordered_json make_jobspec(const ResourceGraph& resources,
                                                  const JobspecProgram& program);

}  // namespace resourced
