// Targets as a user names them: ranks as an idset (RFC 22), or hosts as a hostlist (RFC 29).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/rset/resource_set.hpp"

#pragma GCC visibility push(default)
namespace resourced::rset {

/// The most unknown hosts that one request may name.
inline constexpr std::size_t max_unknown_hosts = 1000;

/// Text that reads as an idset is ranks, any other is hosts. Throws Error EINVAL: `idset is empty`,
/// `idset is out of range` when a rank is not in the set, `unknown host: NAME`, the error of
/// Hostlist::parse(), or for many more entries than the set has ranks. Ranges are not expanded, so the cost
/// follows the length of the text and the size of the set.
[[nodiscard]] text::IdSet parse_targets(std::string_view text, const ResourceSet& set);

/// The same, for hosts that may have left: at most max_unknown_hosts, or Error EINVAL.
[[nodiscard]] HostSearch parse_known_targets(std::string_view text, const ResourceSet& set);
/// The same, with hosts from another set than ranks.
[[nodiscard]] HostSearch parse_known_targets(std::string_view text, const ResourceSet& of_ranks,
                                             const ResourceSet& of_hosts);

/// The hosts of a text that does not read as an idset; nothing for one that does. Throws Error EINVAL with
/// the text of Hostlist::parse().
[[nodiscard]] std::optional<text::Hostlist> hosts_of_targets(std::string_view text);

/// Every rank of these hosts, also where several ranks share a host. Throws Error EINVAL `unknown host:
/// NAME`.
[[nodiscard]] text::IdSet ranks_of_hosts(const text::Hostlist& hosts, const ResourceSet& set);
/// The same, but hosts that are not in the set are passed over.
[[nodiscard]] text::IdSet known_ranks_of_hosts(const text::Hostlist& hosts, const ResourceSet& set);

}  // namespace resourced::rset
#pragma GCC visibility pop
