#include "config/reload.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/quote.hpp"

namespace resourced::config {

namespace {

[[noreturn]] void refuse(const Config& next, std::string_view key, std::string_view what) {
  throw next.fault(key, fmt::format("{}cannot change without a restart", what));
}

struct Run {
  IdSet::Range ranks;
  const ResourceGroup* group;
};

std::vector<Run> runs_of(const ResourceSet& set) {
  std::vector<Run> runs;
  for (const ResourceGroup& group : set.groups())
    group.ranks.for_each_range([&](IdSet::Range range) { runs.push_back({range, &group}); });
  std::sort(runs.begin(), runs.end(),
            [](const Run& a, const Run& b) { return a.ranks.first < b.ranks.first; });
  return runs;
}

/// The first rank with other cores or gpus than before, of two sets of the same ranks.
std::optional<IdSet::Id> first_changed_rank(const ResourceSet& now, const ResourceSet& next) {
  const std::vector<Run> before = runs_of(now);
  const std::vector<Run> after = runs_of(next);
  auto a = before.begin();
  auto b = after.begin();
  while (a != before.end() && b != after.end()) {
    if (a->group->cores != b->group->cores || a->group->gpus != b->group->gpus)
      return std::max(a->ranks.first, b->ranks.first);
    const IdSet::Id end = std::min(a->ranks.last, b->ranks.last);
    if (a->ranks.last == end) ++a;
    if (b->ranks.last == end) ++b;
  }
  return std::nullopt;
}

void check_resources(const ResourceSet& now, const Config& next_config, const ResourceSet& next) {
  const Resource& named = next_config.resource;
  std::string_view key = "resource.config";
  if (named.entries.empty()) key = named.parent_r.empty() ? "resource.path" : "resource.parent-uri";
  if (now.ranks() != next.ranks() || now.nodelist() != next.nodelist()) refuse(next_config, key, "hosts ");
  if (const auto rank = first_changed_rank(now, next))
    refuse(next_config, key, fmt::format("cores and gpus of {} ", resourced::quoted(next.host(*rank))));
  const nlohmann::json* a = now.scheduling();
  const nlohmann::json* b = next.scheduling();
  if ((a && b) ? *a != *b : a != b) refuse(next_config, "resource.scheduling", "");
  if (now.starttime() != next.starttime() || now.expiration() != next.expiration())
    refuse(next_config, key, "starttime and expiration ");
}

bool same_verify(const VerifyOptions& a, const VerifyOptions& b) {
  return a.core == b.core && a.gpu == b.gpu && a.hostname == b.hostname;
}

bool same_parent(const Resource& a, const Resource& b) {
  return a.parent_uri == b.parent_uri && a.parent_key_file == b.parent_key_file &&
         a.parent_settle == b.parent_settle && a.no_update_watch == b.no_update_watch;
}

void check_settings(const Config& now, const Config& next) {
  const Resource& a = now.resource;
  const Resource& b = next.resource;
  const struct {
    std::string_view key;
    bool same;
  } settings[] = {
      {"resource.norestrict", a.norestrict == b.norestrict},
      {"resource.noverify", a.noverify == b.noverify},
      {"resource.verify", same_verify(a.verify, b.verify)},
      {"resource.rediscover", a.rediscover == b.rediscover},
      {"resource.parent-uri", a.parent_uri.empty() == b.parent_uri.empty()},
      {"resource.rerank", a.rerank == b.rerank},
      {"resource.size", a.size == b.size},
      {"resource.discovery-timeout", a.discovery_timeout == b.discovery_timeout},
      {"resource.shrink-lost", a.shrink_lost == b.shrink_lost},
      {"bus.listen", now.bus.listen == next.bus.listen},
      {"bus.send-hwm", now.bus.send_hwm == next.bus.send_hwm},
      {"bus.receive-hwm", now.bus.receive_hwm == next.bus.receive_hwm},
      {"bus.heartbeat-interval", now.bus.heartbeat_interval == next.bus.heartbeat_interval},
      {"bus.heartbeat-timeout", now.bus.heartbeat_timeout == next.bus.heartbeat_timeout},
      {"bus.max-message-size", now.bus.max_message_size == next.bus.max_message_size},
      {"bus.curve-key-file", now.bus.curve_key_file == next.bus.curve_key_file},
      {"bus.insecure", now.bus.insecure == next.bus.insecure},
      {"bus.socket-mode", now.bus.socket_mode == next.bus.socket_mode},
      {"bus.socket-group", now.bus.socket_group == next.bus.socket_group},
      {"limits.connections-per-uid", now.limits.connections_per_uid == next.limits.connections_per_uid},
      {"limits.handshake-timeout", now.limits.handshake_timeout == next.limits.handshake_timeout},
      {"monitor.mode", now.monitor.mode == next.monitor.mode},
      {"store.directory", now.store.directory == next.store.directory},
      {"acquire.partition", now.acquire == next.acquire},
  };
  for (const auto& setting : settings) {
    if (!setting.same) refuse(next, setting.key, "");
  }
}

/// The properties that `in` has and `from` lacks, by name.
ResourceSet::Properties difference(const ResourceSet::Properties& in, const ResourceSet::Properties& from) {
  ResourceSet::Properties result;
  for (const auto& [name, ranks] : in) {
    const auto other = from.find(name);
    IdSet more = other == from.end() ? ranks : ranks - other->second;
    if (!more.empty()) result.emplace(name, std::move(more));
  }
  return result;
}

template <class T>
std::optional<T> changed(const T& now, const T& next) {
  return now == next ? std::nullopt : std::optional<T>(next);
}

}  // namespace

bool ReloadPlan::empty() const noexcept {
  return !exclude && property_add.empty() && property_remove.empty() && !journal_max && !history &&
         !log_level && !parent;
}

ReloadPlan plan_reload(const Config& now, const Inventory& now_inventory, const Config& next,
                       const Inventory& next_inventory) {
  check_settings(now, next);
  check_resources(now_inventory.resources, next, next_inventory.resources);
  const auto& before = now_inventory.resources.properties();
  const auto& after = next_inventory.resources.properties();
  return {
      .exclude = changed(now_inventory.exclude, next_inventory.exclude),
      .property_add = difference(after, before),
      .property_remove = difference(before, after),
      .journal_max = changed(now.resource.journal_max, next.resource.journal_max),
      .history = changed(now.store.history, next.store.history),
      .log_level = changed(now.log.level, next.log.level),
      .parent = !next.resource.parent_uri.empty() && !same_parent(now.resource, next.resource),
  };
}

}  // namespace resourced::config
