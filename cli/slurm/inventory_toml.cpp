// Writes an inventory as TOML, see inventory.hpp.
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/slurm/drains.hpp"
#include "cli/slurm/inventory.hpp"
#include "config/toml_text.hpp"
#include "core/json/utf8.hpp"
#include "core/text/shell_word.hpp"

namespace resourced::cli::slurm {

namespace {

/// Returns the ids of so many cores or gpus as an idset.
std::string ids(unsigned long count) { return count == 1 ? "0" : fmt::format("0-{}", count - 1); }

}  // namespace

std::string to_toml(const Inventory& inventory) {
  std::string text;
  for (const Nodes& nodes : inventory.nodes) {
    text += fmt::format("[[resource.config]]\nhosts = {}\ncores = \"{}\"\n",
                        config::toml_string(nodes.hosts.encode()), ids(nodes.cores));
    if (nodes.gpus > 0) text += fmt::format("gpus = \"{}\"\n", ids(nodes.gpus));
    std::string properties;
    for (const std::string& feature : nodes.features)
      properties += fmt::format("{}{}", properties.empty() ? "" : ",", config::toml_string(feature));
    if (!properties.empty()) text += fmt::format("properties = [{}]\n", properties);
    text += '\n';
  }
  for (const Partition& partition : inventory.partitions) {
    text += fmt::format("[queues.{}]\nhosts = {}\n\n", config::toml_key(partition.name),
                        config::toml_string(partition.has_all ? "all" : partition.hosts.encode()));
  }
  if (!inventory.default_partition.empty()) {
    text += fmt::format("[policy.jobspec.defaults.system]\nqueue = {}\n\n",
                        config::toml_string(inventory.default_partition));
  }
  if (!inventory.out_of_service.empty()) text += "# Out of service, to be drained once the daemon runs:\n";
  for (const OutOfService& out : inventory.out_of_service) {
    const std::string reason = json_text::printable(text::shell_word(out.reason));
    text +=
        fmt::format("#   resourcectl drain {} -- {}\n", text::shell_word(host_targets(out.hosts)), reason);
  }
  if (!inventory.left_out.empty()) text += "# Not carried over:\n";
  for (const std::string& what : inventory.left_out)
    text += fmt::format("#   {}\n", json_text::printable(what));
  return text;
}

}  // namespace resourced::cli::slurm
