// Digests of the configuration files that all members of a cluster should have in common, in groups of
// settings. The leader serves its own files: where those of a standby differ, its takeover changes what the
// cluster serves.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace resourced::cluster {

/// Names of the groups. daemon/log/etcd/file_digests.hpp says which settings are in each.
inline constexpr std::array<std::string_view, 5> file_groups{"inventory", "exclude", "partitions", "monitor",
                                                             "access"};

/// One digest for each group; empty where a member does not tell it.
using FileDigests = std::array<std::string, file_groups.size()>;

/// `{GROUP: DIGEST, ...}`.
[[nodiscard]] nlohmann::json encode_files(const FileDigests& digests);
/// Takes whatever is not a short text for not told: another version may write it, and the digests decide
/// nothing.
[[nodiscard]] FileDigests read_files(const nlohmann::json& value);

/// The groups that differ, in the order of file_groups. A group that either does not tell is not compared;
/// nothing if none can be.
[[nodiscard]] std::optional<std::vector<std::string>> differing_files(const FileDigests& one,
                                                                      const FileDigests& other);

}  // namespace resourced::cluster
