#include <cstdio>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/usage/complete.hpp"
#include "cli/usage/describe.hpp"
#include "cli/usage/parser.hpp"
#include "daemon/commands.hpp"
#include "daemon/manual.hpp"

namespace resourced::daemon {

ParsedOptions parse_options(int argc, char** argv) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  cli::usage::Command app("Holds the inventory of a cluster and gives resources to schedulers (Flux RFC 28).",
                          "resourced");
  std::string level;
  auto* const config =
      app.add_option("--config", options.config, "The configuration: a TOML file, or a directory of them")
          ->type_name("PATH");
  auto* const listen =
      app.add_option("--listen", options.listen,
                     "An endpoint to listen on, ipc://PATH, tcp://HOST:PORT or local://PATH; may be repeated")
          ->type_name("URI")
          ->take_all();
  auto* const state =
      app.add_option("--state", options.state, "The state directory, which has the store")->type_name("DIR");
  auto* const check =
      app.add_flag("--check", options.check,
                   "Check the configuration and the store as a start would, print a summary, and exit");
  auto* const verbose = app.add_flag("--verbose", options.verbose,
                                     "With --check: also print the file and line of each setting");
  auto* const instance =
      app.add_flag("--instance", options.instance,
                   "Serve as the resource module of a Flux instance; used by resourced-keeper");
  auto* const writes = app.add_flag("--export", options.export_complete,
                                    "Write the log of the store to standard output, and exit");
  auto* const complete =
      app.add_flag("--complete", options.export_complete,
                   "With --export, and required there: write all that the state follows from, so that "
                   "--import of the output makes a copy of the store that loses nothing");
  auto* const import =
      app.add_option("--import", options.import,
                     "Import an event log (RFC 18) that has its beginning, or the output of --export "
                     "--complete, into a new store, and exit")
          ->type_name("FILE");
  auto* const backup = app.add_option("--backup", options.backup,
                                      "Copy the store to a new file, beside a running daemon too, check the "
                                      "copy, and exit")
                           ->type_name("FILE");
  auto* const recover =
      app.add_option("--recover-to", options.recover_to,
                     "Give up the events of a store that come after the event with this number, or put a "
                     "backup in its place, list what is lost, and exit")
          ->type_name("EVENT|FILE");
  auto* const cluster_init =
      app.add_flag("--cluster-init", options.cluster_init,
                   "Begin the cluster that the configuration names, with the events of the store, and exit");
  // An instance gets its configuration from the broker, so these options do not apply.
  for (cli::usage::Option* other :
       {check, writes, backup, import, recover, config, listen, state, cluster_init})
    instance->excludes(other);
  for (cli::usage::Option* other : {check, writes, backup, import, recover}) cluster_init->excludes(other);
  for (cli::usage::Option* other : {check, writes, backup, import}) recover->excludes(other);
  for (cli::usage::Option* other : {check, backup, import}) writes->excludes(other);
  for (cli::usage::Option* other : {check, import}) backup->excludes(other);
  verbose->needs(check);
  writes->needs(complete);
  complete->needs(writes);
  app.add_option("--log-level", level,
                 "The least severe level to log: trace, debug, info, warning, error, critical or off")
      ->type_name("LEVEL");
  app.set_version_flag("--version", std::string("resourced " RESOURCED_VERSION));
  if (cli::usage::is_completion(argc, argv)) {
    std::string candidates;
    parsed.exit_status =
        cli::usage::complete_fixed(app, cli::usage::words_to_complete(argc, argv), candidates);
    std::fputs(candidates.c_str(), stdout);
    return parsed;
  }
  if (argc == 2 && argv[1] == cli::usage::describe_word) {
    nlohmann::ordered_json described = cli::usage::describe(app);
    described["sections"] = describe_settings();
    std::puts(described.dump().c_str());
    parsed.exit_status = 0;
    return parsed;
  }
  try {
    if (const auto status = cli::usage::parse_or_print(app, argc, argv)) {
      parsed.exit_status = *status == 0 ? 0 : 2;
    } else if (!level.empty()) {
      options.log_level = config::parse_log_level(level);
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "resourced: --log-level: %s\n", error.what());
    parsed.exit_status = 2;
  }
  return parsed;
}

std::string default_configuration() {
  namespace fs = std::filesystem;
  const fs::path site = configuration_of_service;
  if (fs::exists(site)) return site;
  // Look beside the program first, so that a build tree or a moved installation finds its own sample.
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = program.parent_path().parent_path() / "share/resourced/resourced.toml";
  if (!error && fs::exists(beside)) return beside;
  return RESOURCED_DATADIR "/resourced.toml";
}

}  // namespace resourced::daemon
