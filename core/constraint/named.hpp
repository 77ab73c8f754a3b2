// The hosts, ranks and properties that a constraint names. Constraint::match() ignores those that an
// inventory lacks, because a job may ask for nodes that are added later; in a configuration such a name is a
// mistake.
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
  /// Property names, without the `^` that negates them.
  std::set<std::string, std::less<>> properties;
};

/// Collects the names in a constraint. Requires one that Constraint::from_json() has accepted.
[[nodiscard]] Named named_in(const nlohmann::json& constraint);

}  // namespace resourced::constraint
