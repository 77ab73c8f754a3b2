// The table of examples, fields and exit statuses, see help.hpp.
#include "cli/help.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/usage/command.hpp"
#include "cli/usage/describe.hpp"
#include "cli/views/absent.hpp"
#include "cli/views/cluster_view.hpp"
#include "cli/views/listing.hpp"
#include "cli/views/schedule.hpp"
#include "cli/views/usage.hpp"
#include "cli/views/views.hpp"
#include "proto/topics/usage.hpp"

namespace resourced::cli {

namespace {

struct CommandExample {
  std::string_view command;
  Example example;
};

constexpr auto examples = std::to_array<CommandExample>({
    {"status", {"resourcectl status", "The states of all targets"}},
    {"status",
     {"resourcectl status -s drained,offline -o '{state} {nodelist}'",
      "The chosen fields of drained and offline targets"}},
    {"status", {"resourcectl status -i node[6-7] --json", "The states as JSON, for a script"}},
    {"status", {"resourcectl status -o long", "The states with the reasons of drains"}},
    {"list", {"resourcectl list", "The resources that a scheduler can allocate"}},
    {"list", {"resourcectl list -s down -n -o '{nodelist}'", "The hosts that are down"}},
    {"list", {"resourcectl list --absent", "What waits for hosts that the inventory lacks"}},
    {"info", {"resourcectl info -s up", "Nodes, cores and gpus that are up"}},
    {"show", {"resourcectl show node3", "State, drain, agent, allocations and outages of a node"}},
    {"top", {"resourcectl top", "The state of the cluster, live; q ends it"}},
    {"report", {"resourcectl report --since 30d", "The availability of the last 30 days"}},
    {"report", {"resourcectl report --since 7d --by host --csv", "A row for each host, for a spreadsheet"}},
    {"drain", {"resourcectl drain node[2-3] bad memory", "The nodes get no new work, for this reason"}},
    {"drain", {"resourcectl drain", "The drained targets"}},
    {"drain", {"resourcectl drain -f node3 memory replaced", "Replace the reason of a drained node"}},
    {"drain", {"resourcectl drain --dry-run property:gpu", "Change nothing, and show what would change"}},
    {"drain", {"resourcectl drain --wait --assume-idle node4", "Return when the node has no allocation"}},
    {"drain", {"resourcectl drain --from +1h --until +3h node5 new firmware", "A window of maintenance"}},
    {"undrain", {"resourcectl undrain --reason 'bad*' all", "Nodes that were drained for such a reason"}},
    {"undrain", {"resourcectl undrain node[3-4]", "The nodes can get new work again"}},
    {"acquire", {"resourcectl acquire --count 1", "The resources that a scheduler would get"}},
    {"evict", {"resourcectl evict --reason 'it hangs'", "The scheduler loses the resources that it holds"}},
    {"acquire-mute", {"resourcectl acquire-mute", "No scheduler hears of the nodes that shut down"}},
    {"property list", {"resourcectl property list", "The properties, with the targets that have them"}},
    {"property add", {"resourcectl property add slow-disk node[0-1]", "Constraints can name the property"}},
    {"property remove", {"resourcectl property remove slow-disk node[0-1]", "The nodes lose the property"}},
    {"expiration set", {"resourcectl expiration set +12h", "The resources expire in 12 hours"}},
    {"expiration set", {"resourcectl expiration set 0", "The resources never expire"}},
    {"expiration show", {"resourcectl expiration show", "When the resources expire"}},
    {"shrink", {"resourcectl shrink -y node7", "The node has left for good"}},
    {"unshrink", {"resourcectl unshrink node7", "The node returns at the next start"}},
    {"forget", {"resourcectl forget node8", "Nothing waits for the node any more"}},
    {"allocations", {"resourcectl allocations -i node0", "The allocations on a node"}},
    {"free",
     {"resourcectl free $(resourcectl allocations -n -o '{id}')", "All allocations of a lost scheduler"}},
    {"rolling",
     {"resourcectl rolling --max 2 --assume-idle node[2-5] -- echo update {host}", "At most two at a time"}},
    {"eventlog", {"resourcectl eventlog -n 5", "The last five events"}},
    {"eventlog", {"resourcectl eventlog -i node3 --since 2h", "The events of a node in two hours"}},
    {"eventlog", {"resourcectl eventlog -w drain -t 1m", "Wait for an event"}},
    {"eventlog", {"resourcectl eventlog -H -i node3", "The events of a node, with the time between them"}},
    {"ping", {"resourcectl ping -c 3", "Three round trips"}},
    {"stats", {"resourcectl stats", "Counters, as JSON"}},
    {"reload", {"resourcectl reload", "Apply the changed configuration"}},
    {"backup", {"resourcectl backup resourced.backup", "A copy of the store, while the daemon runs"}},
    {"cluster show", {"resourcectl cluster", "The leader, and the replication lag of the others"}},
    {"cluster show", {"resourcectl cluster show --json", "The members as JSON, for a script"}},
    {"cluster hand-over", {"resourcectl cluster hand-over", "Let a standby lead before work on the leader"}},
    {"keygen", {"resourcectl keygen --name login1 login1.key", "A key pair for a client on another host"}},
    {"idset", {"resourcectl idset --expand 0-3,7", "0 1 2 3 7"}},
    {"hostlist", {"resourcectl hostlist node1 node2 node3", "node[1-3]"}},
    {"hostlist", {"resourcectl hostlist --find node2 node[1-3]", "1"}},
    {"hostlist", {"resourcectl hostlist --minus node[1-4] node2 node4", "node[1,3]"}},
    {"hostlist",
     {"resourcectl list -n -o '{nodelist}' | resourcectl hostlist -e -d '\\n'",
      "The hosts of a listing, one on each line"}},
    {"R show", {"resourcectl R show -s up", "The R that is up"}},
    {"R encode", {"resourcectl R encode -H node[0-3] -c 0-7 -p gpu:2-3", "Four nodes with eight cores each"}},
    {"R parse-config", {"resourcectl R parse-config resourced.toml", "The inventory of a configuration"}},
    {"R decode", {"resourcectl R show | resourcectl R decode --short", "The short form"}},
    {"R decode",
     {"resourcectl R show | resourcectl R decode -p gpu --count node", "How many nodes have gpus"}},
    {"R append",
     {"{ resourcectl R encode -H node0; resourcectl R encode -r 1 -H node1; } | resourcectl R append",
      "The union of two R"}},
    {"R diff",
     {"{ resourcectl R show; resourcectl R show -i node0; } | resourcectl R diff", "All but node0"}},
    {"R intersect",
     {"{ resourcectl R show; resourcectl R show -i node0; } | resourcectl R intersect", "node0 alone"}},
    {"R remap", {"resourcectl R show -i node[2-3] | resourcectl R remap", "An R with ranks 0 and 1"}},
    {"R rerank",
     {"resourcectl R show -i node[0-1] | resourcectl R rerank node[1,0]", "The ranks in another order"}},
    {"R verify",
     {"{ resourcectl R show -i 0; resourcectl R show -i 0; } | resourcectl R verify",
      "Compare the expected R, which comes first, with the found one"}},
    {"R set-property",
     {"resourcectl R show | resourcectl R set-property spare:4-5", "Add a property to ranks 4 and 5"}},
    {"slurm import-inventory",
     {"resourcectl slurm import-inventory slurm.conf", "The nodes of a slurm.conf as a configuration"}},
    {"slurm import-drains",
     {"sinfo -a -R -h -o '%N|%T|%u|%H|%E' | resourcectl slurm import-drains --dry-run",
      "The commands that drain what Slurm has drained"}},
    {"slurm update",
     {"resourcectl slurm update nodename=node[2-3] state=drain reason='bad memory'", "As resourcectl drain"}},
    {"slurm update", {"resourcectl slurm update nodename=node[2-3] state=resume", "As resourcectl undrain"}},
    {"shape", {"resourcectl shape slot=4/core=2", "The resources of a jobspec"}},
    {"shape",
     {"resourcectl shape slot=4/core=2 | resourcectl shape --reverse", "The shape of a resources list"}},
    {"jobspec validate",
     {"resourcectl jobspec from-shape slot=4/core=2 -- hostname | resourcectl jobspec validate",
      "Prints valid"}},
    {"jobspec from-shape",
     {"resourcectl jobspec from-shape slot=4/core=2 --duration 1h -- hostname", "A jobspec as YAML or JSON"}},
    {"constraint", {"resourcectl constraint 'gpu & -debug'", "The constraint as JSON (RFC 31)"}},
    {"feasibility", {"resourcectl feasibility slot=4/core=2", "Prints feasible, or fails with the reason"}},
    {"feasibility",
     {"resourcectl feasibility --constraint gpu slot=1/gpu=1", "Check only targets with a property"}},
});

struct Failure {
  std::string_view command;
  std::string_view text;
};

constexpr auto failures = std::to_array<Failure>({
    {"cluster hand-over", "refused or failed, or another daemon than the successor leads"},
    {"drain", "refused or failed; with --wait: the targets are not idle in time, and stay drained"},
    {"eventlog", "failed, or no such event in time"},
    {"feasibility", "infeasible, or failed"},
    {"hostlist", "failed, a host or position is not in the list, or with --quiet the list is empty"},
    {"jobspec validate", "the jobspec is invalid"},
    {"R verify", "the found resources do not satisfy the expected ones"},
    {"rolling", "a node failed, and no further nodes were drained"},
});

void add_fields(std::vector<std::string>& fields, const views::Listing& listing) {
  for (const views::Column& column : listing.columns) {
    if (std::find(fields.begin(), fields.end(), column.name) == fields.end()) fields.push_back(column.name);
  }
}

/// A listing that a command has with an option alone.
struct OtherListing {
  std::string_view command;
  std::string_view option;
  views::Listing (*columns)();
};

constexpr auto other_listings = std::to_array<OtherListing>({
    {"drain", "--scheduled", views::schedule_columns},
    {"list", "--absent", views::absent_columns},
});

/// Returns the fields of a command without those of other listings.
std::vector<std::string> own_fields(std::string_view command) {
  using proto::topics::ReportBy;
  std::vector<std::string> fields;
  if (command == "status") add_fields(fields, views::status_columns());
  if (command == "list") add_fields(fields, views::sched_columns());
  if (command == "cluster show") add_fields(fields, views::cluster_columns());
  if (command == "property list") add_fields(fields, views::property_columns());
  if (command == "allocations") add_fields(fields, views::allocation_columns());
  if (command == "drain") add_fields(fields, views::drain_columns());
  if (command == "report") {
    for (const auto by :
         {ReportBy::total, ReportBy::host, ReportBy::reason, ReportBy::property, ReportBy::month})
      add_fields(fields, views::report_columns(by));
  }
  return fields;
}

std::string footer(std::string_view command) {
  std::string text;
  if (const auto fields = own_fields(command); !fields.empty())
    text += fmt::format("Fields of -o:\n  {}\n\n", fmt::join(fields, " "));
  for (const OtherListing& other : other_listings) {
    if (other.command != command) continue;
    std::vector<std::string> fields;
    add_fields(fields, other.columns());
    text += fmt::format("Fields of -o with {}:\n  {}\n\n", other.option, fmt::join(fields, " "));
  }
  const auto own = examples_of(command);
  if (!own.empty()) text += "Examples:\n";
  for (const Example& example : own) text += fmt::format("  {}\n      {}\n", example.line, example.note);
  if (!own.empty()) text += '\n';
  text += fmt::format("Exit status:\n  0 done\n  1 {}\n  2 wrong usage", failure_of(command));
  return text;
}

/// Adds the footer of the help to each subcommand that has none of its own.
void add_footers(usage::Command& app) {
  for (const auto& command : app.commands) {
    if (command->commands.empty()) {
      command->footer = footer(command->path());
    } else {
      add_footers(*command);
    }
  }
}

void add_notes(nlohmann::ordered_json& described, const std::string& path) {
  for (auto& command : described["commands"]) {
    const auto name = command["name"].get<std::string>();
    const std::string of_command = path.empty() ? name : fmt::format("{} {}", path, name);
    if (!command["commands"].empty()) {
      add_notes(command, of_command);
      continue;
    }
    command["fields"] = fields_of(of_command);
    command["examples"] = nlohmann::ordered_json::array();
    for (const Example& example : examples_of(of_command))
      command["examples"].push_back({{"line", example.line}, {"note", example.note}});
    command["failure"] = failure_of(of_command);
  }
}

}  // namespace

std::vector<std::string> fields_of(std::string_view command) {
  std::vector<std::string> fields = own_fields(command);
  for (const OtherListing& other : other_listings)
    if (other.command == command) add_fields(fields, other.columns());
  return fields;
}

std::span<const Example> examples_of(std::string_view command) {
  static const auto of_commands = [] {
    std::vector<Example> all;
    all.reserve(examples.size());
    for (const CommandExample& row : examples) all.push_back(row.example);
    return all;
  }();
  const auto is_of = [command](const CommandExample& row) { return row.command == command; };
  const auto first = std::find_if(examples.begin(), examples.end(), is_of);
  const auto last = std::find_if_not(first, examples.end(), is_of);
  return std::span(of_commands)
      .subspan(static_cast<std::size_t>(first - examples.begin()), static_cast<std::size_t>(last - first));
}

std::string_view failure_of(std::string_view command) {
  const auto* const row = std::find_if(failures.begin(), failures.end(), [command](const Failure& failure) {
    return failure.command == command;
  });
  return row == failures.end() ? "refused or failed" : row->text;
}

void add_help(usage::Command& app) {
  add_footers(app);
  app.footer =
      "Exit status:\n  0 done\n  1 refused or failed: one line on standard error says why\n"
      "  2 wrong usage\n\nresourcectl COMMAND --help has the options, examples and fields of -o of a "
      "subcommand.\nManual pages: resourcectl(1), resourced.toml(5), resourced(8).";
}

nlohmann::ordered_json describe_program(const usage::Command& app) {
  auto described = usage::describe(app);
  add_notes(described, "");
  return described;
}

}  // namespace resourced::cli
