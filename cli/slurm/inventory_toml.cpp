// Writes an inventory as TOML, see inventory.hpp.
#include <algorithm>
#include <cctype>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/slurm/drains.hpp"
#include "cli/slurm/inventory.hpp"
#include "core/json/utf8.hpp"
#include "core/text/shell_word.hpp"

namespace resourced::cli::slurm {

namespace {

/// Returns valid UTF-8 as a TOML basic string, which has the form of a JSON string: other characters stay as
/// they are, because TOML has no surrogates.
std::string toml_string(const std::string& text) { return nlohmann::json(text).dump(); }

/// Returns a name as a key, in quotes if it needs them.
std::string toml_key(const std::string& name) {
  const bool is_bare =
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
  return is_bare ? name : toml_string(name);
}

/// Returns the ids of so many cores or gpus as an idset.
std::string ids(unsigned long count) { return count == 1 ? "0" : fmt::format("0-{}", count - 1); }

}  // namespace

std::string to_toml(const Inventory& inventory) {
  std::string text;
  for (const Nodes& nodes : inventory.nodes) {
    text += fmt::format("[[resource.config]]\nhosts = {}\ncores = \"{}\"\n",
                        toml_string(nodes.hosts.encode()), ids(nodes.cores));
    if (nodes.gpus > 0) text += fmt::format("gpus = \"{}\"\n", ids(nodes.gpus));
    if (!nodes.features.empty())
      text += fmt::format("properties = {}\n", nlohmann::json(nodes.features).dump());
    text += '\n';
  }
  for (const Partition& partition : inventory.partitions) {
    text += fmt::format("[queues.{}]\nhosts = {}\n\n", toml_key(partition.name),
                        toml_string(partition.has_all ? "all" : partition.hosts.encode()));
  }
  if (!inventory.default_partition.empty()) {
    text += fmt::format("[policy.jobspec.defaults.system]\nqueue = {}\n\n",
                        toml_string(inventory.default_partition));
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
