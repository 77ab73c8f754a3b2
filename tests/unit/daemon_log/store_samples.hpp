// Records and filters for tests of the store alone, which identifies targets by their hosts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "daemon/log/records.hpp"

namespace resourced::daemon::log {

/// The record of an event that drains one target.
inline Record drain_record(Sequence sequence, text::IdSet::Id rank, const std::string& host,
                           const std::string& reason) {
  Record record;
  record.sequence = sequence;
  record.timestamp = wall_time(100 + static_cast<double>(sequence));
  record.name = "drain";
  record.text = fmt::format(R"({{"timestamp":{},"name":"drain","context":{{"idset":"{}","nodelist":"{}"}}}})",
                            to_number(record.timestamp), rank, host);
  record.hosts = text::Hostlist::parse(host);
  record.changes.drained.push_back({{record.hosts, {}}, record.timestamp, reason});
  return record;
}

/// Targets of a filter. `hosts` and `strangers` are hostlists.
inline std::shared_ptr<const EventTargets> targets_of(std::string_view hosts,
                                                      std::string_view strangers = {}) {
  const text::Hostlist list = text::Hostlist::parse(hosts);
  rset::ResourceSet inventory;
  if (!list.empty()) {
    const text::IdSet ranks = text::IdSet::range(0, static_cast<text::IdSet::Id>(list.size() - 1));
    inventory = rset::ResourceSet({{ranks, {0}, {}}}, list);
  }
  const text::IdSet ranks = inventory.ranks();
  return std::make_shared<const EventTargets>(
      EventTargets{std::make_shared<const rset::ResourceSet>(std::move(inventory)), ranks,
                   text::Hostlist::parse(strangers)});
}

}  // namespace resourced::daemon::log
