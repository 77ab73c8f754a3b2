// Rules between settings.

#include <cerrno>

#include <fmt/format.h>

#include "config/read_config.hpp"
#include "config/table_reader.hpp"

namespace resourced::config {

namespace {

/// Returns the table of a section, if it has the key.
const Node* section_with(const Config& config, std::string_view section, std::string_view key) {
  const Node* node = find_member(*config.document->root().table(), section);
  return node != nullptr && find_member(*node->table(), key) != nullptr ? node : nullptr;
}

void check_heartbeats(const Config& config) {
  const Bus& bus = config.bus;
  if (bus.heartbeat_timeout >= bus.heartbeat_interval) return;
  const bool timeout_is_written = section_with(config, "bus", "heartbeat-timeout") != nullptr;
  throw config.fault(
      timeout_is_written ? "bus.heartbeat-timeout" : "bus.heartbeat-interval",
      fmt::format("the heartbeat-timeout of {}ms is shorter than the heartbeat-interval of {}ms",
                  bus.heartbeat_timeout.count(), bus.heartbeat_interval.count()));
}

/// Checks the history, which Flux sites set in [resource]. If both keys are set they must agree;
/// store.history was read last.
void check_history(const Config& config) {
  const Node* resource = section_with(config, "resource", "history");
  if (resource == nullptr || section_with(config, "store", "history") == nullptr) return;
  const KeyPath path{nullptr, "resource"};
  if (TableReader(*config.document, *resource, path).duration("history") == config.store.history) return;
  throw config.fault("resource.history",
                     fmt::format("differs from store.history ({}), which means the same: remove one of them",
                                 config.where("store.history")));
}

/// Checks that discovery has a size or a timeout, without which it does not end.
void check_discovery(const Config& config) {
  const Resource& resource = config.resource;
  if (config.monitor.mode != MonitorMode::agents || resource.has_inventory() || !resource.parent_uri.empty())
    return;
  if (!resource.size && resource.discovery_timeout == forever)
    throw config.fault("resource.size", "is missing: discovery needs a size or a discovery-timeout");
}

/// Refuses addresses beyond loopback without tokens and TLS, unless `insecure` allows them: the network could
/// read everything.
void check_http(const Config& config) {
  const Http& http = config.http;
  if (http.certificate.empty() != http.key.empty()) {
    throw config.fault(http.key.empty() ? "http.certificate" : "http.key",
                       "certificate and key must be set together");
  }
  if (http.insecure || (!http.token_file.empty() && !http.certificate.empty())) return;
  for (const std::string& text : http.listen) {
    if (parse_http_address(text).is_loopback) continue;
    throw config.fault("http.listen",
                       fmt::format("{} is beyond loopback: set token-file, certificate and key, or allow all "
                                   "of the network to read with insecure = true",
                                   text),
                       EACCES);
  }
}

/// Checks keys that are valid only together.
void check_cluster(const Config& config) {
  const Cluster& cluster = config.cluster;
  if (!cluster.is_set()) return;
  if (cluster.certificate.empty() != cluster.key.empty()) {
    throw config.fault(cluster.key.empty() ? "cluster.certificate" : "cluster.key",
                       "certificate and key must be set together");
  }
  if (cluster.user.empty() != cluster.password_file.empty()) {
    throw config.fault(cluster.user.empty() ? "cluster.password-file" : "cluster.user",
                       "user and password-file must be set together");
  }
}

}  // namespace

void settle(Config& config) {
  Resource& resource = config.resource;
  if (!resource.entries.empty()) resource.path.clear();
  if (resource.noverify) resource.verify = rset::VerifyOptions::all(rset::VerifyMode::ignore);
  if (section_with(config, "monitor", "lost-after") == nullptr)
    config.monitor.lost_after = config.monitor.offline_after;
  check_heartbeats(config);
  check_history(config);
  check_discovery(config);
  check_http(config);
  check_cluster(config);
}

}  // namespace resourced::config
