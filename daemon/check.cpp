// The commands --check and --import, which exit without serving clients.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "config/config.hpp"
#include "config/document.hpp"
#include "config/inventory.hpp"
#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "daemon/instance/parent_link.hpp"
#include "daemon/inventory.hpp"
#include "daemon/log/import.hpp"
#include "daemon/log/store.hpp"
#include "daemon/peers/tokens.hpp"
#include "daemon/process.hpp"
#include "daemon/server.hpp"
#include "daemon/settings.hpp"
#include "proto/key_file.hpp"

namespace resourced::daemon {

using module::RecordedState;

namespace {

/// The directory of the service, whose unit sets $STATE_DIRECTORY for the daemon alone.
constexpr const char* state_of_service = "/var/lib/resourced";

/// The state directory of a start: that of the service, if its configuration is checked and nothing else
/// names a directory.
std::string checked_directory(const Options& options, const config::Config& config) {
  const bool is_named =
      !options.state.empty() || !config.store.directory.empty() || environment("STATE_DIRECTORY");
  std::error_code error;
  const bool is_of_service = std::filesystem::equivalent(
      options.config.empty() ? default_configuration() : options.config, configuration_of_service, error);
  return is_of_service && !is_named ? state_of_service : state_directory(options, config);
}

/// The recorded state, and a line that tells which store was checked. Returns nothing, after a line on
/// stderr, if the store is in use or not readable by this user.
std::optional<RecordedState> peek(const std::string& directory, std::string& told) {
  const std::string store = (std::filesystem::path(directory) / log::store_file).string();
  try {
    auto recorded = log::peek_store(directory);
    told = recorded ? fmt::format("store: {}\n", store) : fmt::format("store: {} is not there yet\n", store);
    return recorded;
  } catch (const Error& error) {
    if (error.errnum() != EBUSY && error.errnum() != EACCES) throw;
    told = fmt::format("store: {} is not checked\n", store);
    fmt::print(stderr, "resourced: {}: changes made at run time are not checked\n", error.what());
    return std::nullopt;
  }
}

// Tokens and key are secret, so the user that runs --check may not be able to read them.
bool may_read(const std::string& path) {
  if (::access(path.c_str(), R_OK) == 0 || errno != EACCES) return true;
  fmt::print(stderr, "resourced: {}: {}: it is not checked\n", path, std::strerror(EACCES));
  return false;
}

void check_http(const config::Http& http) {
  if (!http.token_file.empty() && may_read(http.token_file)) (void)peers::Tokens::load(http.token_file);
  if (!http.key.empty() && may_read(http.key)) (void)http_site(http);
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
    defined = check_start(config, inventory, recorded.value_or(RecordedState{}), fault);
    if (recorded && was_loaded(*recorded))
      fmt::print("{}\n", in_force(config, inventory, is_loaded(config, inventory, *recorded)));
    if (recorded && defined) {
      const std::string line = waiting_for_hosts(engine::absent_of(*recorded, defined->resources));
      if (!line.empty()) fmt::print("{}\n", line);
    }
  }
  if (defined) log_remarks(config, defined->resources);
  (void)endpoints(options, config.bus);
  if (!config.resource.parent_uri.empty()) instance::check_parent(config);
  // Load only the public key, as --check may run as a user that cannot read the secret key.
  if (!config.bus.curve_key_file.empty()) (void)proto::load_public_key(config.bus.curve_key_file);
  check_http(config.http);
  fmt::print("{}{}", config::describe(config, defined ? &*defined : nullptr), store);
  if (!options.verbose) return;
  for (const std::string& line : config.document->places()) fmt::print("set: {}\n", line);
}

void import_log(const Options& options) {
  const config::Config config = load_configuration(options);
  std::ifstream file(options.import);
  if (!file) throw Error(errno, fmt::format("{}: {}", options.import, std::strerror(errno)));
  log::ImportOptions settings;
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
  fmt::print("imported {} events; {} targets are drained\n", imported.events, imported.drained);
}

}  // namespace resourced::daemon
