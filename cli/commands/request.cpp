// Shapes from a command line, see request.hpp.
#include "cli/commands/request.hpp"

#include "cli/commands/context.hpp"

namespace resourced::cli::commands {

ResourceGraph read_shape(const std::string& text, const ShapeOptions& options) {
  try {
    return parse_shape(text, options);
  } catch (const ShapeError& error) {
    throw DetailedError(error.errnum(), error.what(), point_at_column(text, error.column()));
  }
}

}  // namespace resourced::cli::commands
