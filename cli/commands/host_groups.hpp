// Groups of hosts with a name, which targets of a command line may be: `@NAME`.
#pragma once

#include <string>

#include "core/text/hostlist.hpp"

namespace resourced::cli::commands {

/// Returns the hosts of a group: those that the table `groups` of the user's file has for NAME, or else those
/// that ClusterShell's nodeset(1) prints for `@NAME`. Throws Error EINVAL for an unknown group, and if the
/// file or the hosts cannot be read.
[[nodiscard]] text::Hostlist hosts_of_group(const std::string& name);

}  // namespace resourced::cli::commands
