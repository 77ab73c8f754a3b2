// Candidates among many names, such as the hosts of a large cluster: names while they are few, and groups of
// them otherwise, so that a shell never gets thousands of lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace resourced::cli {

/// Up to this many names are candidates themselves.
inline constexpr std::size_t most_names = 64;

/// The names that begin with `prefix`, each once. If they are more than most_names: the beginning that those
/// with the same next character share, for each such character.
[[nodiscard]] std::vector<std::string> name_candidates(std::vector<std::string> names,
                                                       std::string_view prefix);

/// The same for hosts. If they differ in numbers only, all of them together are the first candidate, as a
/// hostlist.
[[nodiscard]] std::vector<std::string> host_candidates(std::vector<std::string> hosts,
                                                       std::string_view prefix);

}  // namespace resourced::cli
