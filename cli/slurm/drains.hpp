// The nodes that Slurm has out of service, as sinfo(1) prints them with a format of its own: in its default
// format reasons have blanks and are cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/hostlist.hpp"

namespace resourced::cli::slurm {

/// The command whose output read_drains() reads. The reason is the last field, as it may have any character.
inline constexpr std::string_view sinfo_command = "sinfo -a -R -h -o '%N|%T|%u|%H|%E'";

struct Drain {
  /// `FILE:LINE`, for errors.
  std::string place;
  text::Hostlist hosts;
  std::string state;
  std::string user;
  std::string time;
  std::optional<std::string> reason;
};

/// Returns targets that mean hosts alone. `host:` is before each part that `resourcectl drain` would read as
/// ranks or as a selector: `5` and `all` may be names of nodes. Throws Error EINVAL for names that are no
/// nodes, and for an empty list.
[[nodiscard]] std::string host_targets(const text::Hostlist& hosts);

/// Reads the output of sinfo_command. Throws Error EINVAL `NAME:LINE: ...` for another text, for names that
/// are no nodes, and for a state of nodes in service: the output without -R has all nodes.
[[nodiscard]] std::vector<Drain> read_drains(std::string_view text, std::string_view name);

}  // namespace resourced::cli::slurm
