// Targets as a command line names them: ranks as an idset, hosts as a hostlist, and the selectors `all`,
// `property:NAME`, `partition:NAME`, `rank:IDSET` and `host:HOSTLIST`, separated by commas. Pure functions of
// one answer to resource.status, so the targets of a selector are those of one moment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

/// Whether selectors stand for excluded targets too. Those that are named by rank or host always count.
enum class Excluded { kept, left_out };

struct Selection {
  text::IdSet ranks;
  /// The same targets for a request. They are named by host, so that the request means the same targets if
  /// ranks are renumbered in the meantime; by rank where hosts repeat or could be read as ranks.
  std::string request;
};

/// Whether a part of the text is a selector.
[[nodiscard]] bool has_selector(std::string_view text);
/// Whether the text is an idset.
[[nodiscard]] bool reads_as_ranks(std::string_view text);

/// `all` is a host where the inventory has one of this name. A text without a selector is read as the daemon
/// does (rset::parse_targets), a part of a text with selectors likewise. Throws Error EINVAL as that does,
/// but names all unknown hosts; and for a property or partition that does not exist, listing those that do,
/// for one without targets,
/// and for numbers that are ranks and names of other hosts (rset::refuse_numbers_of_hosts()).
[[nodiscard]] Selection select_targets(std::string_view text, const proto::topics::Status& status,
                                       Excluded excluded = Excluded::kept);

[[nodiscard]] Selection select_ranks(text::IdSet ranks, const rset::ResourceSet& inventory);

/// The first word of a reason if it names a host of the inventory: probably the host is meant as a target.
[[nodiscard]] std::optional<std::string> host_in_reason(std::string_view reason,
                                                        const rset::ResourceSet& inventory);

/// Whether each word of a reason is an idset, a selector or a host of the inventory, as in `drain 1 2 3`:
/// probably all are meant as targets.
[[nodiscard]] bool reads_as_targets(std::string_view reason, const rset::ResourceSet& inventory);

/// An error text of the daemon with the hosts of the ranks that it names: `rank 7 not drained (node7)`; with
/// all unknown hosts among `targets` in place of the first. Any other text is returned unchanged.
[[nodiscard]] std::string explain_refusal(const std::string& refusal, std::string_view targets,
                                          const rset::ResourceSet& inventory);

}  // namespace resourced::cli::commands
