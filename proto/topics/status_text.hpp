// Parts of the texts of a status that several topics have, for the sources of this folder.
#pragma once

#include <string>
#include <string_view>

#include "core/module/drain_table.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::proto::topics {

/// The states that a status of any time has.
struct ShownStates {
  const rset::ResourceSet& inventory;
  const module::DrainTable& drains;
  const text::IdSet& online;
  const text::IdSet& torpid;
  const text::IdSet& exclude;
};

void append_states(std::string& out, const ShownStates& states);
/// Nothing without scheduled drains.
void append_scheduled(std::string& out, const module::DrainTable& drains);
/// The key `shrunk`, sorted: a daemon that leads has the hosts by rank, one that follows in the order of the
/// events.
void append_removed(std::string& out, text::Hostlist hosts);
void append_ids(std::string& out, std::string_view key, const text::IdSet& ids);
/// The hosts of attr.get.
[[nodiscard]] text::Hostlist hosts_by_rank(const rset::ResourceSet& all);

}  // namespace resourced::proto::topics
