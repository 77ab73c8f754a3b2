// Names of nodes: the host names of RFC 29 that are safe as a word of a command. Names come from node agents
// and files and end up in operators' commands, where ssh takes -oProxyCommand=... as an option and a shell
// runs $(...).
#pragma once

#include <string_view>

#include "core/text/hostlist.hpp"

namespace resourced::text {

/// Throws Error EINVAL that shows the first name, or expression of names, with other characters than letters,
/// digits, `.`, `-` and `_`, or that begins with another character than a letter or digit. The cost follows
/// the expressions of the list.
void check_node_names(const Hostlist& hosts);

/// Whether a host that has no name of its own yet, or for good, calls itself so.
[[nodiscard]] bool is_localhost(std::string_view name) noexcept;

}  // namespace resourced::text
