// Parts of the texts of a status that several topics share. Private to this folder.
#pragma once

#include <string>
#include <string_view>

#include "core/module/drain_table.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::proto::topics {

/// The states in a status, of the present or of an earlier time.
struct ShownStates {
  const rset::ResourceSet& inventory;
  const module::DrainTable& drains;
  const text::IdSet& online;
  const text::IdSet& torpid;
  const text::IdSet& exclude;
};

void append_states(std::string& out, const ShownStates& states);
/// Appends the key `scheduled`, unless there are no scheduled drains.
void append_scheduled(std::string& out, const module::DrainTable& drains);
/// Appends the key `shrunk`, sorted: a leader has the hosts by rank, a standby in the order of the events.
void append_removed(std::string& out, text::Hostlist hosts);
void append_ids(std::string& out, std::string_view key, const text::IdSet& ids);
/// Returns the hosts for attr.get.
[[nodiscard]] text::Hostlist hosts_by_rank(const rset::ResourceSet& all);

}  // namespace resourced::proto::topics
