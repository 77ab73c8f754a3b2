// Lists of hosts in which a name may have several pairs of brackets, such as rack[1-2]node[0-3]. RFC 29 has
// one pair, and Slurm and ClusterShell any number.
#pragma once

#include <string_view>
#include <vector>

#include "core/text/hostlist.hpp"

namespace resourced::text {

/// Splits a text at the commas outside of brackets. Parts may be empty.
[[nodiscard]] std::vector<std::string_view> split_outside_brackets(std::string_view text);

/// Reads a name with any number of pairs of brackets, the last of which counts fastest. Throws Error as
/// Hostlist::parse() does, and ERANGE before it is expanded if all pairs together stand for more than
/// Hostlist::max_expansion hosts.
[[nodiscard]] Hostlist parse_brackets(std::string_view name);
/// Reads a list of such names, with the same errors. All together stand for no more hosts than one may.
[[nodiscard]] Hostlist parse_brackets_list(std::string_view list);

}  // namespace resourced::text
