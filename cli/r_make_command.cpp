// resourcectl R encode and parse-config: an R from options, or from a configuration.
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "config/config.hpp"
#include "config/inventory.hpp"
#include "core/error.hpp"
#include "core/rset/compose.hpp"

namespace resourced::cli {

namespace {

std::string local_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) {
    const int errnum = errno;
    throw Error(errnum, std::string("gethostname: ") + std::strerror(errnum));
  }
  return name.data();
}

}  // namespace

void register_r_make(CLI::App& r, Context& context) {
  struct Options {
    std::string ranks;
    std::string cores;
    std::string gpus;
    std::string hosts;
    std::vector<std::string> properties;
  };
  auto options = std::make_shared<Options>();
  auto* encode = r.add_subcommand("encode", "Print an R made from options");
  encode->add_option("-r,--ranks", options->ranks, "Ranks; default: one for each host");
  encode->add_option("-c,--cores", options->cores, "Cores of each rank; default: 0");
  encode->add_option("-g,--gpus", options->gpus, "Gpus of each rank; default: none");
  encode->add_option("-H,--hosts", options->hosts, "Hosts; default: this host");
  encode->add_option("-p,--property", options->properties, "NAME[:RANKS]; may be given several times")
      ->expected(1)
      ->take_all();
  encode->callback([options, encode, &context] {
    Composition parts;
    if (encode->count("--ranks") != 0) parts.ranks = IdSet::parse(options->ranks);
    if (encode->count("--cores") != 0) parts.cores = IdSet::parse(options->cores);
    if (encode->count("--hosts") != 0) parts.hosts = Hostlist::parse(options->hosts);
    parts.gpus = IdSet::parse(options->gpus);
    parts.properties = options->properties;
    context.print_line(compose(parts, local_host()).encode());
  });

  auto path = std::make_shared<std::string>();
  auto* parse_config = r.add_subcommand("parse-config", "Print the R that a configuration describes");
  parse_config->add_option("PATH", *path, "A TOML file, or a directory of them")->required();
  parse_config->callback([path, &context] {
    context.print_line(config::load_inventory(config::load(*path)).resources.encode());
  });
}

}  // namespace resourced::cli
