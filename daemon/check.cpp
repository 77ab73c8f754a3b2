// The commands --check, --export, --backup, --import and --recover-to, which exit without serving clients.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "config/config.hpp"
#include "config/document.hpp"
#include "config/inventory.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/module/module.hpp"
#include "core/text/duration.hpp"
#include "core/text/whole_number.hpp"
#include "daemon/commands.hpp"
#include "daemon/instance/parent_link.hpp"
#include "daemon/inventory.hpp"
#include "daemon/log/complete_log.hpp"
#include "daemon/log/etcd/etcd_client.hpp"
#include "daemon/log/import.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_recovery.hpp"
#include "daemon/peers/tokens.hpp"
#include "daemon/process.hpp"
#include "daemon/settings.hpp"
#include "os/loop.hpp"
#include "proto/key_file.hpp"

namespace resourced::daemon {

namespace {

/// The directory of the service, whose unit sets $STATE_DIRECTORY for the daemon alone.
constexpr const char* state_of_service = "/var/lib/resourced";

/// Returns the state directory of a start. If the configuration of the service is checked, and nothing else
/// names a directory, it is that of the service.
std::string checked_directory(const Options& options, const config::Config& config) {
  const bool is_named =
      !options.state.empty() || !config.store.directory.empty() || environment("STATE_DIRECTORY");
  std::error_code error;
  const bool is_of_service = std::filesystem::equivalent(
      options.config.empty() ? default_configuration() : options.config, configuration_of_service, error);
  return is_of_service && !is_named ? state_of_service : state_directory(options, config);
}

// The clocks of machines differ by less than this.
constexpr Seconds tolerated_ahead{60};

/// Reads the recorded state, and sets `told` to a line with the store that was checked. Returns nothing,
/// after a line on stderr, if the store is in use or not readable by this user.
std::optional<module::State> peek(const std::string& directory, std::string& told) {
  const std::string store = (std::filesystem::path(directory) / log::store_file).string();
  try {
    auto recorded = log::peek_store(directory);
    told = recorded ? fmt::format("store: {}\n", store) : fmt::format("store: {} is not there yet\n", store);
    if (!recorded) return std::nullopt;
    if (const Seconds ahead = recorded->last - os::wall_clock(); ahead > tolerated_ahead) {
      fmt::print(
          "the log is {} ahead of the clock, so events get the time of the last one: check the clock, or "
          "export the log and import it into a new store, which takes no time ahead\n",
          text::format_duration(std::chrono::floor<std::chrono::seconds>(ahead)));
    }
    return std::move(recorded->state);
  } catch (const Error& error) {
    if (error.errnum() != EBUSY && error.errnum() != EACCES) throw;
    told = fmt::format("store: {} is not checked\n", store);
    fmt::print(stderr, "resourced: {}: changes made at run time are not checked\n", error.what());
    return std::nullopt;
  }
}

/// Returns the state after a start with this inventory.
module::State started(const module::State& state, const config::Inventory& inventory) {
  module::Module module(state);
  module::DefineCommand start;
  start.inventory = std::make_shared<const rset::ResourceSet>(inventory.resources);
  start.exclude = inventory.exclude;
  for (const module::Event& event : module.start(start, os::wall_clock())) (void)module.apply(event);
  return module.state();
}

// Whether this user may read a file: tokens and keys are secret, so the user of --check may not.
bool may_read(const std::string& path) {
  if (::access(path.c_str(), R_OK) == 0 || errno != EACCES) return true;
  fmt::print(stderr, "resourced: {}: {}: it is not checked\n", path, std::strerror(EACCES));
  return false;
}

void check_http(const config::Http& http) {
  if (!http.token_file.empty() && may_read(http.token_file)) (void)peers::Tokens::load(http.token_file);
  if (!http.key.empty() && may_read(http.key)) (void)http_site(http);
}

/// Refuses a configuration with which each start of a member of a cluster would fail. Does not ask etcd.
void check_cluster(const Options& options, const config::Config& config) {
  const config::Cluster& cluster = config.cluster;
  if (!cluster.is_set()) return;
  (void)advertised_uri(options, config);
  if (!cluster.password_file.empty() && !may_read(cluster.password_file)) return;
  if (!cluster.key.empty() && !may_read(cluster.key)) return;
  boost::asio::io_context loop;
  (void)log::etcd::EtcdClient(loop, cluster);
}

}  // namespace

void check(const Options& options) {
  const config::Config config = load_configuration(options);
  set_up_logging(options.log_level.value_or(config.log.level));
  log_passed_over(config);
  const std::string state = checked_directory(options, config);
  std::optional<Error> fault;
  const config::Inventory inventory = starting_inventory(config, state, fault);
  std::optional<config::Inventory> defined;
  std::string store;
  if (const auto recorded = peek(state, store); recorded || config.resource.has_inventory()) {
    defined = check_start(config, inventory, recorded.value_or(module::State{}), fault);
    if (recorded && was_loaded(*recorded))
      fmt::print("{}\n", in_force(config, inventory, is_loaded(config, inventory, *recorded)));
    if (recorded && defined) {
      const module::State next = started(*recorded, *defined);
      const std::string line = waiting_for_hosts(next.absent, next.ledger);
      if (!line.empty()) fmt::print("{}\n", line);
    }
  }
  if (defined) log_remarks(config, defined->resources);
  (void)endpoints(options, config.bus);
  if (!config.resource.parent_uri.empty()) instance::check_parent(config);
  // Load only the public key, as --check may run as a user that cannot read the secret key.
  if (!config.bus.curve_key_file.empty()) (void)proto::load_public_key(config.bus.curve_key_file);
  check_http(config.http);
  check_cluster(options, config);
  config::Config told = config;
  if (!options.state.empty()) told.store.directory = options.state;
  if (!options.listen.empty()) told.bus.listen = options.listen;
  fmt::print("{}{}", config::describe(told, defined ? &*defined : nullptr), store);
  if (!options.verbose) return;
  for (const std::string& line : config.document->places()) fmt::print("set: {}\n", line);
}

void recover(const Options& options) {
  const config::Config config = load_configuration(options);
  const std::string directory = state_directory(options, config);
  const auto last = text::whole_number<log::Sequence>(options.recover_to);
  if (config.cluster.is_set()) {
    throw Error(
        EINVAL,
        "the log of a member of a cluster is in etcd: move its state directory away, and it takes a copy "
        "from the others");
  }
  const log::Recovered recovered =
      last ? log::recover_store(directory, *last) : log::restore_store(directory, options.recover_to);
  for (const std::string& line : recovered.lost) fmt::print("given up: {}\n", line);
  fmt::print("the store ends with event {}", recovered.last);
  if (!recovered.kept.empty()) fmt::print("; {} is the file as it was", recovered.kept);
  fmt::print("\n");
}

void backup(const Options& options) {
  const std::string directory = checked_directory(options, load_configuration(options));
  const log::Backup made = log::backup_store(directory, options.backup);
  fmt::print("{}: the store up to event {}, {} bytes\n", options.backup, made.last, made.bytes);
}

void export_log(const Options& options) {
  const std::string directory = checked_directory(options, load_configuration(options));
  const auto check_written = [](bool is_written) {
    if (!is_written) throw Error(errno, fmt::format("standard output: {}", std::strerror(errno)));
  };
  log::export_complete(directory, [&](const std::string& lines) {
    check_written(std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size());
  });
  check_written(std::fflush(stdout) == 0);
}

void import_log(const Options& options) {
  const config::Config config = load_configuration(options);
  std::ifstream file(options.import);
  if (!file) throw Error(errno, fmt::format("{}: {}", options.import, std::strerror(errno)));
  log::ImportOptions settings;
  settings.now = os::wall_clock();
  settings.max_line = std::min(settings.max_line, config.bus.max_message_size);
  if (config.resource.has_inventory()) {
    auto inventory = std::make_shared<const rset::ResourceSet>(config::load_inventory(config).resources);
    settings.configured_expiration = inventory->expiration();
    settings.partitions = partition_rules(config, *inventory);
    settings.inventory = std::move(inventory);
  }
  const log::Imported imported =
      log::import_events(file, options.import, state_directory(options, config), settings);
  if (!imported.assumed.empty()) {
    fmt::print(
        stderr,
        "resourced: warning: {}: does not name the hosts of ranks {}: taken as {}, which have these ranks in "
        "the configuration\n",
        options.import, imported.assumed.encode(), settings.inventory->hosts(imported.assumed).encode());
  }
  if (imported.ahead > 0) {
    fmt::print(
        stderr,
        "resourced: warning: {}: {} events are ahead of the clock: they have the time of this import\n",
        options.import, imported.ahead);
  }
  fmt::print("imported {} events; {} targets are drained\n", imported.events, imported.drained);
}

}  // namespace resourced::daemon
