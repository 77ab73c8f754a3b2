// Reads targets of a command line: ranks as an idset, hosts as a hostlist, and the selectors `all`,
// `property:NAME`, `partition:NAME`, `rank:IDSET`, `host:HOSTLIST` and `@GROUP` (host_groups.hpp), separated
// by commas. `-` before a part takes its targets from those of the others. Functions of one answer to
// resource.status, so the targets of a selector are those of one moment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

/// Whether selectors include excluded targets. Targets that are named by rank or host are always included.
enum class Excluded { kept, left_out };

struct Selection {
  text::IdSet ranks;
  /// The targets in the form of a request. They are named by host, so that the request means the same targets
  /// if ranks are renumbered in the meantime; by rank where hosts repeat or could be read as ranks.
  std::string request;
};

/// Whether a part of the text is a selector, is taken away, or is a hostlist with several brackets in a name,
/// such as rack[1-2]node[0-3], which RFC 29 does not have.
[[nodiscard]] bool has_selector(std::string_view text);
/// Returns a text without the selector `rank:` or `host:` at its beginning.
[[nodiscard]] std::string_view without_kind(std::string_view text);
/// Whether the text is an idset.
[[nodiscard]] bool reads_as_ranks(std::string_view text);

/// Selects targets. `all` is a host if the inventory has one of this name. A text without a selector is read
/// as the daemon does (rset::parse_targets), and so is a part of a text with selectors. Throws Error EINVAL
/// as that does, but names all unknown hosts; and for an unknown property or partition, with the known ones,
/// for an unknown group, for a text without targets, and for numbers that are ranks and names of other hosts
/// (rset::refuse_numbers_of_hosts()).
[[nodiscard]] Selection select_targets(std::string_view text, const proto::topics::Status& status,
                                       Excluded excluded = Excluded::kept);

/// Returns what an idset or a hostlist names that the inventory lacks: `unknown host: node77`, or an empty
/// text. The hosts in `left` are known, too.
[[nodiscard]] std::string unknown_targets(std::string_view text, const rset::ResourceSet& inventory,
                                          const text::Hostlist& left = {});

[[nodiscard]] Selection select_ranks(text::IdSet ranks, const rset::ResourceSet& inventory);

/// Returns the first word of a reason if it names a host of the inventory, which is probably meant as a
/// target.
[[nodiscard]] std::optional<std::string> host_in_reason(std::string_view reason,
                                                        const rset::ResourceSet& inventory);

/// Whether each word of a reason is an idset, a selector or a host of the inventory, as in `drain 1 2 3`:
/// these are probably all meant as targets.
[[nodiscard]] bool reads_as_targets(std::string_view reason, const rset::ResourceSet& inventory);

/// Returns an error text of the daemon with the hosts of the ranks in it, the reasons for which they are
/// drained, and the options to go on with: `rank 7 not drained (node7): use -f to skip it`; with all unknown
/// hosts among `targets` in place of the first. Any other text is returned unchanged.
[[nodiscard]] std::string explain_refusal(const std::string& refusal, std::string_view targets,
                                          const proto::topics::Status& status);

}  // namespace resourced::cli::commands
