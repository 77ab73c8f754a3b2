// Targets that a scheduler does not have yet, or still has, because RFC 28 has no response that gives a
// scheduler further targets.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/text/idset.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

/// Returns the moves of these targets as `[{"ranks", "from", "to"}]`: they go from one partition to another
/// once the holder of the first releases them. Both are the same for targets that nobody keeps, which the
/// holder of that partition gets with its next acquire. null stands for the targets in no partition.
[[nodiscard]] nlohmann::json moves_of(const proto::topics::Division& division, const text::IdSet& targets);
/// Returns the moves of these targets as text for people, in one line without a line end.
[[nodiscard]] std::string short_moves_of(const proto::topics::Division& division, const text::IdSet& targets);
/// Returns text with one line for each move of these targets. The line says what a holder has to do first.
[[nodiscard]] std::string moves_text(const proto::topics::Division& division, const text::IdSet& targets);

}  // namespace resourced::cli::views
