// Records and filters for tests of the store alone, which knows targets by their hosts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "daemon/store/records.hpp"

namespace resourced::daemon::store {

/// The record of an event that drains one target.
inline Record drain_record(Sequence sequence, IdSet::Id rank, const std::string& host,
                           const std::string& reason) {
  Record record;
  record.sequence = sequence;
  record.timestamp = wall_time(100 + static_cast<double>(sequence));
  record.name = "drain";
  record.text = fmt::format(R"({{"timestamp":{},"name":"drain","context":{{"idset":"{}","nodelist":"{}"}}}})",
                            to_number(record.timestamp), rank, host);
  record.hosts = Hostlist::parse(host);
  record.changes.drained.push_back({{record.hosts, {}}, record.timestamp, reason});
  return record;
}

/// Targets of a filter. `hosts` and `strangers` are hostlists.
inline std::shared_ptr<const EventTargets> targets_of(std::string_view hosts,
                                                      std::string_view strangers = {}) {
  const Hostlist list = Hostlist::parse(hosts);
  ResourceSet inventory;
  if (!list.empty()) {
    const IdSet ranks = IdSet::range(0, static_cast<IdSet::Id>(list.size() - 1));
    inventory = ResourceSet({{ranks, {0}, {}}}, list);
  }
  const IdSet ranks = inventory.ranks();
  return std::make_shared<const EventTargets>(EventTargets{
      std::make_shared<const ResourceSet>(std::move(inventory)), ranks, Hostlist::parse(strangers)});
}

}  // namespace resourced::daemon::store
