// Discovers the inventory from reports of node agents, if no configuration defines one (RFC 28: dynamic
// discovery): collects reports until there are enough, and numbers the hosts. Pure: time is an argument. A
// restart takes the inventory from the store, without another discovery unless resource.rediscover is set.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>

#include "core/nodes/node_report.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::nodes {

struct DiscoverySettings {
  /// Number of nodes that make the inventory complete, excluded ones included; unset for all that report
  /// before the timeout.
  std::optional<std::size_t> size;
  /// After this time the inventory is complete with the nodes that have reported; if there are none, with the
  /// first one that does.
  Seconds timeout = forever;
};

/// Hosts of the last inventory, and hosts that left for good.
struct RecordedHosts {
  /// Ranks that hosts had: the hosts in the order of the sorted ranks.
  text::IdSet ranks;
  text::Hostlist hosts;
  /// Hosts that left for good.
  std::unordered_set<std::string> gone;
};

class Discovery {
 public:
  Discovery(const DiscoverySettings& settings, RecordedHosts recorded, SteadyTime now);

  /// Sets the excluded hosts, which count towards the size whether they report or not. Replaces the hosts of
  /// an earlier call.
  void exclude(const text::Hostlist& hosts);

  /// Takes the report of a node. A later report of the same host replaces the earlier one. Throws Error
  /// EINVAL if the host left for good, or there are more nodes than an inventory can hold.
  void report(NodeReport report);
  /// Removes a host whose agent has left before the inventory was complete.
  void withdraw(const std::string& hostname);

  /// Whether the inventory is complete.
  [[nodiscard]] bool complete(SteadyTime now) const;
  /// Returns when complete() becomes true by itself, if agents stay as they are.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  /// Returns a text with the number of nodes that have reported, and those that are waited for as far as they
  /// are known.
  [[nodiscard]] std::string progress() const;

  /// Returns the reported inventory: a host keeps the rank that it had before, the others get the lowest free
  /// ranks in the natural order of their names (n2 before n10), in whatever order they reported.
  [[nodiscard]] rset::ResourceSet inventory() const;

 private:
  /// Returns the number of nodes that count towards the size.
  [[nodiscard]] std::size_t counted() const;

  DiscoverySettings settings_;
  RecordedHosts recorded_;
  SteadyTime deadline_;
  std::map<std::string, NodeReport> nodes_;
  // Excluded hosts, each once. excluded_here_ counts those that have reported.
  text::Hostlist excluded_;
  std::size_t excluded_here_ = 0;
  // Number of excluded hosts that left for good: they do not count towards the size.
  std::size_t excluded_gone_ = 0;
};

}  // namespace resourced::nodes
