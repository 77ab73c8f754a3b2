// Makes the inventory from the `[[resource.config]]` entries of a configuration: hosts with cores, gpus and
// properties, where later entries add to what earlier ones gave.
#pragma once

#include <string>
#include <vector>

#include "core/rset/resource_set.hpp"

namespace resourced {

class InventoryBuilder {
 public:
  /// One entry. Throws Error EINVAL for no hosts at all or a property name that RFC 20 does not allow.
  void add(Hostlist hosts, IdSet cores, IdSet gpus, std::vector<std::string> properties);

  /// Ranks are numbered from 0 in the order in which hosts were first named. Throws Error EINVAL that names
  /// the first host with neither cores nor gpus.
  [[nodiscard]] ResourceSet finish() const;

 private:
  struct Entry {
    Hostlist hosts;
    IdSet cores;
    IdSet gpus;
    std::vector<std::string> properties;
  };

  std::vector<Entry> entries_;
};

}  // namespace resourced
