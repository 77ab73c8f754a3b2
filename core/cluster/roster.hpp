// The members of a cluster as etcd has them, and which of them takes over when the leader hands over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cluster/files.hpp"
#include "core/cluster/keys.hpp"
#include "core/cluster/requests.hpp"

namespace resourced::cluster {

/// The leader as `leader` has it.
struct Leader {
  std::string name;
  std::string uri;
  /// Settings::process of the member that leads.
  std::string process;
  Revision epoch = 0;
};

/// A connected member as it has last told.
struct Standing {
  std::string name;
  /// Where clients reach it once it leads.
  std::string uri;
  /// Empty for a member whose version does not tell.
  std::string version;
  /// The last event that it has. Members tell this at most once a second.
  Sequence applied = 0;
  FileDigests files = {};
};

struct Roster {
  std::optional<Leader> leader;
  /// The last event of the log.
  Sequence head = 0;
  /// In the order of their names.
  std::vector<Standing> members;
};

/// Of more members only the first are read.
inline constexpr std::size_t most_members = 64;

[[nodiscard]] Transaction ask_roster();
/// Throws Garbled with the key of a value that no member has written.
[[nodiscard]] Roster read_roster(const TransactionDone& done);
/// Throws Garbled.
[[nodiscard]] Leader read_leader(const KeyValue& leader);
/// Settings::process of the member that has written this entry. Empty if its version does not tell, and if no
/// member has written it.
[[nodiscard]] std::string process_of(const KeyValue& member);

/// The files of the member that leads; none are told while nobody leads.
[[nodiscard]] FileDigests leading_files(const Roster& roster);

/// The member that is to lead after `self`: the one of this name, or of all others the one with the most
/// events. Throws Error EINVAL if that is `self`, ENOENT if there is no such member.
[[nodiscard]] const Standing& choose_successor(const Roster& roster, const std::string& self,
                                               const std::optional<std::string>& name);

}  // namespace resourced::cluster
