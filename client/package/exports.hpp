// Included before each source of the shared library: what the public headers declare is exported, and the
// rest of the library is hidden (-fvisibility=hidden).
#pragma once

#include <nlohmann/json_fwd.hpp>

// Public headers declare these classes, and do not define them.
namespace resourced::rset {
class [[gnu::visibility("hidden")]] DocumentReader;
class [[gnu::visibility("hidden")]] TargetTable;
}  // namespace resourced::rset

#pragma GCC visibility push(default)
#include "client/acquisition.hpp"
#include "client/allocations.hpp"
#include "client/connection.hpp"
#include "client/target_wait.hpp"
#include "core/error.hpp"
#include "core/rset/operations.hpp"
#include "core/rset/resource_set.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#pragma GCC visibility pop
