// resourcectl R encode and parse-config: an R from options, or from a configuration.
#include <memory>
#include <string>
#include <vector>

#include "agent/hw/probe.hpp"
#include "cli/commands/context.hpp"
#include "cli/usage/command.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/rset/compose.hpp"

namespace resourced::cli::commands {

using text::IdSet;

namespace {

/// Gives each rank the cores and gpus of the probed node.
void set_hardware(rset::Composition& parts, const agent::hw::ProbeOptions& options) {
  const rset::ResourceSet node =
      agent::hw::node_resources(agent::hw::local_hostname(), agent::hw::probe(options));
  parts.cores = node.groups().front().cores;
  parts.gpus = node.groups().front().gpus;
}

}  // namespace

void register_r_make(usage::Command& r, Context& context) {
  struct Options {
    std::string ranks;
    std::string cores;
    std::string gpus;
    std::string hosts;
    std::vector<std::string> properties;
    bool local = false;
    std::string xml;
  };
  auto options = std::make_shared<Options>();
  auto* encode = r.add_subcommand("encode", "Print an R made from options");
  encode->add_option("-r,--ranks", options->ranks, "Ranks; default: one for each host")->type_name("RANKS");
  auto* cores = encode->add_option("-c,--cores", options->cores, "Ids of the cores of each rank; default: 0")
                    ->type_name("CORES");
  auto* gpus = encode->add_option("-g,--gpus", options->gpus, "Ids of the gpus of each rank; default: none")
                   ->type_name("GPUS");
  encode->add_flag("-l,--local", options->local, "Cores and gpus of each rank are those of this host")
      ->excludes(cores)
      ->excludes(gpus);
  encode
      ->add_option("-f,--xml", options->xml,
                   "Cores and gpus of each rank are those of a topology file, as lstopo writes it")
      ->type_name("FILE")
      ->excludes(cores)
      ->excludes(gpus);
  encode->add_option("-H,--hosts", options->hosts, "Hosts; default: this host")->type_name("HOSTS");
  encode
      ->add_option("-p,--property", options->properties,
                   "NAME[:RANKS], without ranks for all of them; may be given several times")
      ->type_name("PROPERTY")
      ->expected(1)
      ->take_all();
  encode->callback([options, encode, &context] {
    rset::Composition parts;
    if (encode->count("--ranks") != 0) parts.ranks = IdSet::parse(options->ranks);
    if (encode->count("--cores") != 0) parts.cores = IdSet::parse(options->cores);
    if (encode->count("--hosts") != 0) parts.hosts = text::Hostlist::parse(options->hosts);
    parts.gpus = IdSet::parse(options->gpus);
    // As with `flux R encode`, --xml takes precedence over --local.
    if (encode->count("--xml") != 0) {
      set_hardware(parts, {.xml = options->xml, .synthetic = std::nullopt});
    } else if (options->local) {
      set_hardware(parts, {});
    }
    parts.properties = options->properties;
    context.print_line(compose(parts, agent::hw::local_hostname()).encode());
  });

  auto path = std::make_shared<std::string>();
  auto* parse_config = r.add_subcommand("parse-config", "Print the R that a configuration describes");
  parse_config->add_option("PATH", *path, "A TOML file, or a directory of them")->required();
  parse_config->callback([path, &context] {
    context.print_line(config::load_inventory(config::load(*path)).resources.encode());
  });
}

}  // namespace resourced::cli::commands
