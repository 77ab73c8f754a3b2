// Names of nodes: the host names of RFC 29 that are safe as a word of a command. Names come from node agents
// and files and end up in operators' commands, where ssh takes -oProxyCommand=... as an option and a shell
// runs $(...).
#pragma once

#include <string_view>

#include "core/text/hostlist.hpp"

namespace resourced::text {

/// Refuses hosts whose names are not node names. Throws Error EINVAL that shows the first name, or expression
/// of names, that has other characters than letters, digits, `.`, `-` and `_`, or that does not begin with a
/// letter or digit. The cost follows the expressions of the list.
void check_node_names(const Hostlist& hosts);

/// Whether this is one of the names of a host that has no name of its own.
[[nodiscard]] bool is_localhost(std::string_view name) noexcept;

}  // namespace resourced::text
