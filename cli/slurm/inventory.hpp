// The meaning of slurm.conf(5) as far as nodes and partitions go: the nodes that slurmctld would show, with
// their cores, gpus and features.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/slurm/conf_lines.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::cli::slurm {

/// Maximum number of nodes in all, which is that of Slurm.
inline constexpr std::size_t max_nodes = std::size_t{1} << 16;

/// The nodes of a line of NodeName, each with these resources.
struct Nodes {
  text::Hostlist hosts;
  unsigned long cores = 1;
  unsigned long gpus = 0;
  /// Features that are valid names of properties, without repeats.
  std::vector<std::string> features;
};

struct Partition {
  std::string name;
  /// Whether it has all nodes; `hosts` is empty then.
  bool has_all = false;
  text::Hostlist hosts;
};

struct OutOfService {
  text::Hostlist hosts;
  std::string reason;
};

struct Inventory {
  std::vector<Nodes> nodes;
  /// Partitions with at least one node.
  std::vector<Partition> partitions;
  /// Name of the partition with Default=YES; empty if there is none.
  std::string default_partition;
  /// Nodes that the file itself takes out of service.
  std::vector<OutOfService> out_of_service;
  /// The settings that the other fields do not have, as `FILE:LINE: SETTING`, each once with its first place.
  std::vector<std::string> left_out;
};

/// Reads the lines of a slurm.conf. Nodes with State=FUTURE are left out, also from the partitions.
/// Contradictions that slurmctld resolves, such as CPUs that no sockets have, are resolved alike. Throws
/// Error EINVAL `FILE:LINE: ...` for a number out of range, names that are no hosts, a node or partition that
/// is named twice, and nodes of a partition that no line has; ENOENT if there is no node.
[[nodiscard]] Inventory read_inventory(const std::vector<ConfLine>& lines);

/// Returns the configuration of the daemon as TOML: an entry of [[resource.config]] for each line of nodes,
/// and a queue for each partition, because queues may share nodes and the partitions of [acquire] may not.
/// Comments have the commands that drain nodes out of service, and the settings that are left out.
[[nodiscard]] std::string to_toml(const Inventory& inventory);

}  // namespace resourced::cli::slurm
