#include "core/nodes/discovery.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/invariant.hpp"

namespace resourced::nodes {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

std::unordered_map<std::string, IdSet::Id> by_host(const RecordedHosts& recorded) {
  std::unordered_map<std::string, IdSet::Id> ranks;
  std::size_t position = 0;
  recorded.ranks.for_each([&](IdSet::Id rank) {
    if (position < recorded.hosts.size()) ranks.emplace(recorded.hosts.at(position++), rank);
  });
  return ranks;
}

}  // namespace

Discovery::Discovery(const DiscoverySettings& settings, RecordedHosts recorded, SteadyTime now)
    : settings_(settings), recorded_(std::move(recorded)), deadline_(now + settings.timeout) {}

void Discovery::exclude(const Hostlist& hosts) {
  excluded_ = hosts;
  excluded_.unique();
  excluded_here_ = 0;
  for (const auto& [hostname, report] : nodes_) excluded_here_ += excluded_.find(hostname) ? 1 : 0;
  excluded_gone_ = 0;
  for (const std::string& hostname : recorded_.gone) excluded_gone_ += excluded_.find(hostname) ? 1 : 0;
}

void Discovery::report(NodeReport report) {
  if (recorded_.gone.contains(report.hostname)) {
    throw Error(EINVAL, fmt::format("host {} has left the instance for good", report.hostname));
  }
  if (nodes_.size() >= ResourceSet::max_targets && !nodes_.contains(report.hostname)) {
    throw Error(EINVAL, fmt::format("more than {} nodes", ResourceSet::max_targets));
  }
  std::string hostname = report.hostname;
  const bool excluded = excluded_.find(hostname).has_value();
  const bool fresh = nodes_.insert_or_assign(std::move(hostname), std::move(report)).second;
  if (fresh && excluded) ++excluded_here_;
}

void Discovery::withdraw(const std::string& hostname) {
  if (nodes_.erase(hostname) > 0 && excluded_.find(hostname)) --excluded_here_;
}

std::size_t Discovery::counted() const {
  RESOURCED_INVARIANT(excluded_here_ + excluded_gone_ <= excluded_.size());
  return nodes_.size() + excluded_.size() - excluded_here_ - excluded_gone_;
}

bool Discovery::complete(SteadyTime now) const {
  if (nodes_.empty()) return false;
  return now >= deadline_ || (settings_.size && counted() >= *settings_.size);
}

std::string Discovery::progress() const {
  constexpr std::size_t most_named = 16;
  std::string text = settings_.size ? fmt::format("{} of {} nodes have reported", counted(), *settings_.size)
                                    : fmt::format("{} node{} reported", nodes_.size(),
                                                  nodes_.size() == 1 ? " has" : "s have");
  // Only hosts of the last inventory can be named: names of new ones are not known.
  Hostlist missing;
  std::size_t others = 0;
  recorded_.hosts.for_each([&](std::string_view host) {
    const std::string name(host);
    if (nodes_.contains(name) || recorded_.gone.contains(name) || excluded_.find(name)) return;
    if (missing.size() < most_named) {
      missing.append(host);
    } else {
      ++others;
    }
  });
  if (missing.size() > 0) text += fmt::format(", waiting for {}", missing.encode());
  if (others > 0) text += fmt::format(" and {} more", others);
  return text;
}

std::optional<SteadyTime> Discovery::next_deadline() const {
  if (nodes_.empty() || deadline_ == SteadyTime(forever)) return std::nullopt;
  return deadline_;
}

ResourceSet Discovery::inventory() const {
  Hostlist names;
  for (const auto& [hostname, report] : nodes_) names.append(hostname);
  names.sort();

  const auto known = by_host(recorded_);
  std::vector<std::pair<IdSet::Id, const NodeReport*>> ranked;
  std::vector<const NodeReport*> fresh;
  IdSet taken;
  names.for_each([&](std::string_view name) {
    const auto found = nodes_.find(std::string(name));
    RESOURCED_INVARIANT(found != nodes_.end());
    const NodeReport& report = found->second;
    if (const auto rank = known.find(report.hostname); rank != known.end()) {
      ranked.emplace_back(rank->second, &report);
      taken.insert(rank->second);
    } else {
      fresh.push_back(&report);
    }
  });
  IdSet::Id next = 0;
  for (const NodeReport* report : fresh) {
    while (taken.contains(next)) ++next;
    ranked.emplace_back(next++, report);
  }
  std::ranges::sort(ranked);

  std::vector<rset::ResourceGroup> groups;
  Hostlist hosts;
  ResourceSet::Properties properties;
  for (const auto& [rank, report] : ranked) {
    groups.push_back({IdSet{rank}, report->cores, report->gpus});
    hosts.append(report->hostname);
    for (const std::string& name : report->properties) properties[name].insert(rank);
  }
  ResourceSet inventory(std::move(groups), std::move(hosts));
  for (const auto& [name, ranks] : properties) inventory.add_property(name, ranks);
  return inventory;
}

}  // namespace resourced::nodes
