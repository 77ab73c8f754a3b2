// Targets as a user names them: ranks as an idset (RFC 22), or hosts as a hostlist (RFC 29).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/rset/resource_set.hpp"

#pragma GCC visibility push(default)
namespace resourced::rset {

/// Maximum number of unknown hosts in one request.
inline constexpr std::size_t max_unknown_hosts = 1000;

/// Reads targets. Text that is a valid idset names ranks, any other text names hosts. Throws Error EINVAL:
/// `idset is empty`, `idset is out of range` when a rank is not in the set, `unknown host: NAME`, the error
/// of Hostlist::parse(), or for many more entries than the set has ranks. Ranges are not expanded, so the
/// cost follows the length of the text and the size of the set.
[[nodiscard]] text::IdSet parse_targets(std::string_view text, const ResourceSet& set);

/// Reads targets as parse_targets() does, but accepts up to max_unknown_hosts unknown hosts, which may have
/// left. Throws Error EINVAL for more.
[[nodiscard]] HostSearch parse_known_targets(std::string_view text, const ResourceSet& set);
/// Does the same, with hosts from another set than ranks.
[[nodiscard]] HostSearch parse_known_targets(std::string_view text, const ResourceSet& of_ranks,
                                             const ResourceSet& of_hosts);

/// Returns the hosts of a text that is not a valid idset; nothing for a valid one. Throws Error EINVAL with
/// the text of Hostlist::parse().
[[nodiscard]] std::optional<text::Hostlist> hosts_of_targets(std::string_view text);

/// Returns every rank of these hosts, also where several ranks share a host. Throws Error EINVAL `unknown
/// host: NAME`.
[[nodiscard]] text::IdSet ranks_of_hosts(const text::Hostlist& hosts, const ResourceSet& set);
/// Does the same, but ignores hosts that the set lacks.
[[nodiscard]] text::IdSet known_ranks_of_hosts(const text::Hostlist& hosts, const ResourceSet& set);

}  // namespace resourced::rset
#pragma GCC visibility pop
