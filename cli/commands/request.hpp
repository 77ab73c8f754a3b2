// Shared parts of the commands about requests: shapes from a command line, with errors that point at the
// place.
#pragma once

#include <string>

#include "core/jobspec/resource_graph.hpp"
#include "core/jobspec/shape.hpp"

namespace resourced::cli::commands {

/// parse_shape(), with an error that shows the shape and a caret below the place.
[[nodiscard]] ResourceGraph read_shape(const std::string& text, const ShapeOptions& options = {});

}  // namespace resourced::cli::commands
