#include "daemon/settings.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "config/remarks.hpp"
#include "config/sample.hpp"
#include "core/constraint/named.hpp"
#include "core/constraint/query.hpp"
#include "core/error.hpp"
#include "daemon/instance/parent_link.hpp"
#include "daemon/process.hpp"
#include "os/log.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

using module::PartitionRule;

namespace {

// Whether a host is a loopback address. Names other than localhost may resolve to any address, so they are
// not.
bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

/// Refuses hosts and ranks that are not in the inventory. Node agents that report the inventory may come
/// later.
void check_named(const constraint::Constraint& constraint, const rset::ResourceSet& inventory,
                 config::Absent absent, bool is_configured) {
  if (!is_configured) absent.any_host = absent.any_rank = true;
  const constraint::Named named = constraint::named_in(constraint.to_json());
  (void)config::present_ranks(named.hosts, inventory, absent);
  if (!named.ranks.empty()) (void)config::parse_present_targets(named.ranks.encode(), inventory, absent);
}

/// Refuses settings that cannot be used with flux.socket: the instance has the inventory, and its brokers are
/// watched.
void check_flux(const config::Config& config) {
  if (config.flux.socket.empty()) return;
  const auto refuse = [&](std::string_view key, std::string_view what) {
    throw config.fault(key, fmt::format("{} cannot be used with flux.socket", what));
  };
  if (!config.resource.entries.empty()) refuse("resource.config", "an inventory");
  if (!config.resource.path.empty()) refuse("resource.path", "an inventory");
  if (!config.resource.parent_uri.empty()) refuse("resource.parent-uri", "an enclosing instance");
  if (!config.resource.exclude.empty()) refuse("resource.exclude", "exclusions");
  if (!config.acquire.partitions.empty()) refuse("acquire.partition", "partitions");
  if (config.monitor.mode == config::MonitorMode::agents) refuse("monitor.mode", "node agents");
  if (config.cluster.is_set()) refuse("cluster.etcd", "a cluster");
}

}  // namespace

config::Config load_configuration(const Options& options) {
  config::Config config = config::load(options.config.empty() ? default_configuration() : options.config);
  if (!config.resource.parent_uri.empty() && !config.resource.has_inventory()) {
    config.resource.parent_r = environment("RESOURCED_PARENT_R").value_or("");
  }
  check_flux(config);
  return config;
}

void log_passed_over(const config::Config& config) {
  for (const std::string& line : config.passed_over) os::log_info("{}", line);
  if (config::has_sample_inventory(config)) {
    os::log_warning("{}: these are the hosts of the packaged sample configuration: describe your own",
                    config.where("resource.config"));
  }
}

void log_remarks(const config::Config& config, const rset::ResourceSet& resources) {
  for (const std::string& line : config::remarks(config, resources)) os::log_warning("{}", line);
}

std::string state_directory(const Options& options, const config::Config& config) {
  if (!options.state.empty()) return options.state;
  if (!config.store.directory.empty()) return config.store.directory;
  return proto::state_directory(environment);
}

std::vector<proto::Endpoint> endpoints(const Options& options, const config::Bus& bus) {
  std::vector<std::string> uris = options.listen.empty() ? bus.listen : options.listen;
  if (uris.empty()) uris = {proto::default_bus_uri(environment), proto::default_local_uri(environment)};
  std::vector<proto::Endpoint> endpoints;
  for (const std::string& uri : uris) {
    const auto& endpoint = endpoints.emplace_back(proto::parse_endpoint(uri, proto::EndpointUse::listen));
    const bool exposed = endpoint.scheme == proto::Scheme::tcp && !is_loopback(endpoint.host);
    if (exposed && bus.curve_key_file.empty() && !bus.insecure) {
      throw Error(EACCES,
                  fmt::format("cannot listen on {}: without bus.curve-key-file the network could read and "
                              "forge everything; to allow that, set bus.insecure = true",
                              uri));
    }
  }
  return endpoints;
}

std::string advertised_uri(const Options& options, const config::Config& config) {
  const std::string& written = config.cluster.advertise;
  std::string uri = written.empty() ? endpoints(options, config.bus).front().uri() : written;
  try {
    const std::string host = proto::parse_endpoint(uri, proto::EndpointUse::connect).host;
    if (host != "0.0.0.0" && host != "::") return uri;
  } catch (const Error& error) {
    if (!written.empty()) throw config.fault("cluster.advertise", error.what());
  }
  throw config.fault(
      "cluster.advertise",
      fmt::format("clients cannot connect to {}: set it to a URI such as tcp://HOST:7481", uri));
}

peers::Access access(const config::Config& config) {
  const std::string& file = config.http.token_file;
  return {config.access, geteuid(), file.empty() ? peers::Tokens() : peers::Tokens::load(file)};
}

http::Site http_site(const config::Http& http) {
  return {http::HostNames(http.names), !http.token_file.empty(),
          http.certificate.empty() ? nullptr : http::load_tls(http.certificate, http.key)};
}

bool revokes_keys(const config::Access& before, const config::Access& after) {
  return std::ranges::any_of(before.keys, [&](const config::AccessKey& key) {
    return std::ranges::find(after.keys, key.public_key, &config::AccessKey::public_key) == after.keys.end();
  });
}

std::unique_ptr<client::Connection> parent_connection(const config::Config& config,
                                                      const std::vector<proto::Endpoint>& own) {
  if (config.resource.parent_uri.empty()) return nullptr;
  auto connection = instance::connect_parent(config);
  for (const proto::Endpoint& endpoint : own) {
    if (endpoint.uri() == connection->uri()) {
      throw config.fault("resource.parent-uri", "this daemon itself listens there");
    }
  }
  if (config.resource.no_update_watch) return nullptr;
  return connection;
}

std::vector<PartitionRule> partition_rules(const config::Config& config, const rset::ResourceSet& inventory,
                                           const config::Absent& absent) {
  std::vector<PartitionRule> rules;
  for (std::size_t i = 0; i < config.acquire.partitions.size(); ++i) {
    const config::Partition& partition = config.acquire.partitions[i];
    const std::string key =
        fmt::format("acquire.partition[{}].{}", i, partition.targets ? "targets" : "constraint");
    PartitionRule rule{partition.name, std::nullopt, {}};
    config.checked(key, [&] {
      if (partition.targets) {
        rule.targets = config::parse_present_targets(*partition.targets, inventory, absent);
      } else {
        rule.constraint = constraint::parse_query(*partition.constraint);
        check_named(rule.constraint, inventory, absent, config.resource.has_inventory());
      }
    });
    rules.push_back(std::move(rule));
  }
  return rules;
}

module::LedgerRules ledger_rules(const config::Config& config) {
  return {config.allocations.max_bytes, config.allocations.free_expired};
}

std::optional<nodes::Settings> agent_settings(const config::Config& config) {
  const config::Monitor& monitor = config.monitor;
  if (monitor.mode != config::MonitorMode::agents) return std::nullopt;
  nodes::Settings settings;
  settings.monitor = {monitor.torpid_after, monitor.offline_after, monitor.grace,      monitor.coalesce,
                      monitor.flap_count,   monitor.flap_window,   monitor.lost_after, monitor.drain_lost};
  settings.health.gate = monitor.health_gate;
  if (monitor.health_return == config::HealthReturn::automatic)
    settings.health.on_return = nodes::HealthReturn::automatic;
  settings.expect_all = config.resource.shrink_lost || monitor.drain_lost != forever;
  if (!config.resource.shrink_lost) settings.monitor.lost_after = forever;
  settings.verify = config.resource.verify;
  settings.norestrict = config.resource.norestrict;
  return settings;
}

config::Config reloaded(config::Config next, const config::Config& now) {
  config::Cluster cluster = now.cluster;
  cluster.user = next.cluster.user;
  cluster.password_file = next.cluster.password_file;
  cluster.certificate = next.cluster.certificate;
  cluster.key = next.cluster.key;
  cluster.ca_file = next.cluster.ca_file;
  next.cluster = std::move(cluster);
  next.store.directory = now.store.directory;
  return next;
}

}  // namespace resourced::daemon
