// resourcectl slurm: the configuration and the drains of Slurm for this daemon, and drains in the words of
// scontrol.
#include <cerrno>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/drain_command.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/selection.hpp"
#include "cli/slurm/conf_lines.hpp"
#include "cli/slurm/drains.hpp"
#include "cli/slurm/inventory.hpp"
#include "cli/usage/command.hpp"
#include "core/error.hpp"
#include "core/rset/targets.hpp"
#include "core/text/host_brackets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/text/quote.hpp"
#include "core/text/shell_word.hpp"
#include "os/file.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

namespace {

void import_inventory(const Context& context, const std::string& file) {
  const auto lines = slurm::read_conf(file, [&context](const std::string& path) {
    return path == "-" ? read_all(context.in()) : os::read_file(path, slurm::max_conf_text);
  });
  context.out() << slurm::to_toml(slurm::read_inventory(lines));
}

/// Throws Error for the first line with a host that cannot be drained.
void check_hosts(const std::vector<slurm::Drain>& drains, Snapshot& snapshot) {
  for (const auto& drain : drains) {
    try {
      const auto named = select_targets(slurm::host_targets(drain.hosts), snapshot.status());
      const proto::topics::Status& status = snapshot.status();
      if (const auto excluded = named.ranks & status.exclude; !excluded.empty()) {
        throw Error(EINVAL, fmt::format("excluded here, and cannot be drained: {}; leave it out",
                                        status.inventory.hosts(excluded).encode()));
      }
    } catch (const Error& error) {
      throw Error(error.errnum(), fmt::format("{}: {}", drain.place, error.what()));
    }
  }
}

/// Returns why the drains would be refused, with all hosts that cannot be drained; empty if nothing is known
/// against them. Warns if no daemon tells.
std::string expected_refusal(Context& context, const std::vector<slurm::Drain>& drains, Snapshot& snapshot) {
  if (drains.empty()) return {};
  text::Hostlist unknown;
  text::IdSet excluded;
  try {
    const proto::topics::Status& status = snapshot.status();
    std::set<std::string> seen;
    for (const auto& drain : drains) {
      const auto found = status.inventory.ranks_of(drain.hosts, rset::max_unknown_hosts);
      for (const std::string& host : found.unknown) {
        if (seen.insert(host).second) unknown.append(host);
      }
      excluded |= found.ranks & status.exclude;
    }
  } catch (const Error& error) {
    context.warn(fmt::format("not known whether these nodes can be drained: {}", error.what()));
    return {};
  }
  std::string text;
  if (!unknown.empty())
    text = fmt::format("unknown host{}: {}", unknown.size() == 1 ? "" : "s", unknown.encode());
  if (!excluded.empty()) {
    text += fmt::format("{}excluded here, and cannot be drained: {}", text.empty() ? "" : "; ",
                        snapshot.status().inventory.hosts(excluded).encode());
  }
  return text.empty() ? text : "nothing would be drained: " + text;
}

void import_drains(Context& context, const std::string& file, bool dry_run) {
  const auto drains = slurm::read_drains(read_file(context, file), file == "-" ? "standard input" : file);
  Snapshot snapshot(context);
  // Look all nodes up before the first change.
  const std::string refusal = dry_run ? expected_refusal(context, drains, snapshot) : "";
  if (!dry_run) check_hosts(drains, snapshot);
  for (const auto& drain : drains) {
    const std::string hosts = slurm::host_targets(drain.hosts);
    const std::string reason = drain.reason.value_or("");
    if (dry_run) {
      context.print_line(fmt::format("resourcectl drain --update {}{}{}", text::shell_word(hosts),
                                     reason.empty() ? "" : " -- ",
                                     reason.empty() ? "" : text::shell_word(reason)));
    } else {
      drain_targets(context, hosts, reason, FormerDrain::kept);
    }
    context.warn(fmt::format("not carried over: {} {} in Slurm, by {} at {}", hosts, drain.state, drain.user,
                             drain.time));
  }
  if (!refusal.empty()) throw Error(EINVAL, refusal);
}

/// Runs `update nodename=NODES state=STATE reason=TEXT` as scontrol does.
void update(Context& context, const std::vector<std::string>& words) {
  std::optional<std::string> nodes;
  std::optional<std::string> state;
  std::string reason;
  std::set<std::string> seen;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = slurm::lower_case(word.substr(0, equals));
    if (equals == std::string::npos || (key != "nodename" && key != "state" && key != "reason")) {
      throw UsageError(
          fmt::format("slurm update: expected nodename=, state= or reason=, found {}", text::quoted(word)));
    }
    const std::string value = word.substr(equals + 1);
    if (!seen.insert(key).second) throw UsageError(fmt::format("slurm update: {}= is there twice", key));
    if (key == "nodename") nodes = value;
    if (key == "state") state = slurm::lower_case(value);
    if (key == "reason") reason = value;
  }
  if (!nodes || !state) throw UsageError("slurm update: nodename= and state= are required");
  const std::string targets =
      slurm::lower_case(*nodes) == "all" ? "all" : slurm::host_targets(text::parse_brackets_list(*nodes));
  if (*state == "drain") {
    if (reason.empty()) throw UsageError("slurm update: state=drain needs reason=TEXT");
    drain_targets(context, targets, reason, FormerDrain::replaced);
  } else if (*state == "resume" || *state == "undrain") {
    undrain_targets(context, targets);
  } else {
    throw UsageError(
        fmt::format("slurm update: no state {} here: drain takes nodes out of service, resume and "
                    "undrain return them, and agents tell which are down",
                    text::quoted(*state)));
  }
}

}  // namespace

void register_slurm(usage::Command& app, Context& context) {
  struct Options {
    std::string file;
    std::string drains = "-";
    bool dry_run = false;
    std::vector<std::string> words;
  };
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("slurm", "Take over nodes from Slurm");
  command->require_subcommand(1);

  auto* inventory = command->add_subcommand("import-inventory",
                                            "Print the nodes and partitions of a slurm.conf as a "
                                            "configuration of the daemon; its comments name the settings "
                                            "that have no counterpart");
  inventory->add_option("FILE", options->file, "The slurm.conf, or - for standard input")->required();
  inventory->callback([options, &context] { import_inventory(context, options->file); });

  auto* drains = command->add_subcommand("import-drains",
                                         fmt::format("Drain the nodes that Slurm has drained or down, with "
                                                     "its reasons, as printed by {}; nodes that are "
                                                     "drained here already keep their reasons",
                                                     slurm::sinfo_command));
  drains->add_option("FILE", options->drains, "The output of that command; default: - for standard input");
  drains->add_flag(
      "--dry-run", options->dry_run,
      "Change nothing, and print the commands for it; fails if a node is unknown or excluded here");
  drains->callback([options, &context] {
    if (options->drains == "-" && context.interactive())
      throw UsageError(
          "slurm import-drains: FILE is missing, and standard input, which is read instead, is a terminal");
    import_drains(context, options->drains, options->dry_run);
  });

  auto* change = command->add_subcommand("update",
                                         "Drain or undrain in the words of scontrol update: nodename=NODES "
                                         "state=drain reason=TEXT, or state=resume or "
                                         "undrain");
  change->add_option("KEY=VALUE", options->words, "nodename=, state= and reason=, in any order")->required();
  change->callback([options, &context] { update(context, options->words); });
}

}  // namespace resourced::cli::commands
