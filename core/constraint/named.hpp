// The hosts, ranks and properties that a constraint names. Constraint::match() passes over those that an
// inventory lacks, as a job may ask for nodes of tomorrow; a configuration that names them has a mistake.
#pragma once

#include <functional>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::constraint {

struct Named {
  text::Hostlist hosts;
  text::IdSet ranks;
  /// Without the `^` that negates them.
  std::set<std::string, std::less<>> properties;
};

/// Requires a constraint that Constraint::from_json() has accepted.
[[nodiscard]] Named named_in(const nlohmann::json& constraint);

}  // namespace resourced::constraint
