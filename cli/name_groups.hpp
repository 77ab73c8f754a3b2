// Candidates among many names, such as the hosts of a large cluster: names while they are few, and groups of
// them otherwise, so that a shell never gets thousands of lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace resourced::cli {

/// Maximum number of names that are offered singly.
inline constexpr std::size_t most_names = 64;

/// Returns the names that begin with `prefix`, each once. If they exceed most_names, returns the common
/// beginnings of the names with the same next character.
[[nodiscard]] std::vector<std::string> name_candidates(std::vector<std::string> names,
                                                       std::string_view prefix);

/// Does the same for hosts. If they differ in numbers only, all of them together are the first candidate, as
/// a hostlist.
[[nodiscard]] std::vector<std::string> host_candidates(std::vector<std::string> hosts,
                                                       std::string_view prefix);

}  // namespace resourced::cli
