// Records and filters for tests of the store alone, which identifies targets by their hosts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "core/module/event.hpp"
#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"

namespace resourced::daemon::log {

/// The record of an event that drains one target.
inline Record drain_record(Sequence sequence, text::IdSet::Id rank, const std::string& host,
                           const std::string& reason) {
  Record record;
  record.sequence = sequence;
  record.timestamp = wall_time(100 + static_cast<double>(sequence));
  record.name = "drain";
  record.text = fmt::format(
      R"({{"timestamp":{},"name":"drain","context":{{"idset":"{}","nodelist":"{}","reason":"{}"}}}})",
      to_number(record.timestamp), rank, host, reason);
  record.rest = "";
  record.hosts = text::Hostlist::parse(host);
  return record;
}

/// The record of any event that changes states of targets, or of a definition.
inline Record record_of(Sequence sequence, const module::EventBody& body, const std::string& hosts = {},
                        const std::optional<module::Actor>& by = std::nullopt) {
  engine::Record record;
  record.sequence = sequence;
  record.event = {wall_time(100 + static_cast<double>(sequence)), body, by};
  record.hosts = text::Hostlist::parse(hosts);
  if (const auto* definition = std::get_if<module::DefineEvent>(&body))
    record.resources = std::make_shared<const std::string>(definition->inventory->encode());
  return make_record(std::move(record));
}

/// An inventory of these hosts, each with two cores.
inline std::shared_ptr<const rset::ResourceSet> inventory_of(std::string_view hosts) {
  const text::Hostlist list = text::Hostlist::parse(hosts);
  const text::IdSet ranks = text::IdSet::range(0, static_cast<text::IdSet::Id>(list.size() - 1));
  return std::make_shared<const rset::ResourceSet>(std::vector<rset::ResourceGroup>{{ranks, {0, 1}, {}}},
                                                   list);
}

/// A definition of this inventory, by a configuration that says the same.
inline module::DefineEvent definition_of(std::string_view hosts) {
  module::DefineEvent event;
  event.inventory = inventory_of(hosts);
  event.configured = event.inventory;
  return event;
}

/// The state after the last event.
inline module::State state_of(StoreWriter& writer) {
  StoreReader reader(writer.database(), writer.hosts());
  return PastReader(writer.database(), reader).last_states();
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
