// Makes the inventory from the `[[resource.config]]` entries of a configuration: hosts with cores, gpus and
// properties, where later entries add to earlier ones.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/rset/group_table.hpp"
#include "core/rset/resource_set.hpp"

namespace resourced::rset {

class InventoryBuilder {
 public:
  /// Adds one entry. Throws Error EINVAL if it has no hosts, or a property name that RFC 20 does not allow.
  void add(const text::Hostlist& hosts, const text::IdSet& cores, const text::IdSet& gpus,
           const std::vector<std::string>& properties);

  /// Makes the inventory. Ranks are numbered from 0 in the order in which hosts were first named. Throws
  /// Error EINVAL that names the first host with neither cores nor gpus. The builder must not be used
  /// afterwards.
  [[nodiscard]] ResourceSet finish();

 private:
  struct Entry {
    /// Positions of the entry's hosts in hosts_.
    text::IdSet::Range positions;
    GroupTable::Children children;
    std::vector<std::string> properties;
  };

  [[nodiscard]] text::IdSet::Range place(const text::Hostlist& hosts);

  /// The hosts of all entries. Entries with the same list of hosts share positions.
  text::Hostlist hosts_;
  /// Positions in hosts_ by the text of the hosts, for entries with several hosts.
  std::unordered_map<std::string, text::IdSet::Range> places_;
  std::vector<Entry> entries_;
  GroupTable table_;
};

}  // namespace resourced::rset
