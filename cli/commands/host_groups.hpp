// Groups of hosts with a name, which targets of a command line may be: `@NAME`.
#pragma once

#include <chrono>
#include <string>

#include "core/text/hostlist.hpp"

namespace resourced::cli::commands {

/// Returns the hosts of a group: those that the table `groups` of the user's file has for NAME, or else those
/// that ClusterShell's nodeset(1) prints for `@NAME`. Throws Error EINVAL for an unknown group, if
/// nodeset does not end in time, and if the file or the hosts cannot be read.
[[nodiscard]] text::Hostlist hosts_of_group(const std::string& name,
                                            std::chrono::milliseconds patience = std::chrono::seconds(20));

}  // namespace resourced::cli::commands
