// Reads the text of an R document from outside: bounded in size and depth, and without a JSON value for every
// entry of R_lite, of which there may be one for each rank of a large cluster.
#pragma once

#include <string_view>

#include "core/rset/resource_set.hpp"

namespace resourced::rset {

/// Throws Error EINVAL that names the path, or the place in the text that is not JSON.
[[nodiscard]] ResourceSet read_text(std::string_view text);

}  // namespace resourced::rset
