// The inventory that a configuration names: an R file (RFC 20) or [[resource.config]], with the scheduling
// key and the excluded targets, and its description for people. This file only reads it; core/module applies
// it.
#pragma once

#include <optional>
#include <string>

#include "config/config.hpp"
#include "config/queues.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::config {

struct Inventory {
  rset::ResourceSet resources;
  std::string method = "configuration";
  text::IdSet exclude;  ///< a subset of resources.ranks()
  /// The R of the enclosing instance, if there is one: `resources` is derived from it.
  std::optional<rset::ResourceSet> handed_down = std::nullopt;
};

/// Reads the inventory of a configuration; an R of an enclosing instance gets ranks from 0 (method
/// `job-info`). Throws Error EINVAL that names file, line and key (for an R file also the R file and the path
/// inside), ENOENT when no inventory is configured, or the errno of a file that cannot be read.
[[nodiscard]] Inventory load_inventory(const Config& config);

/// Returns the excluded targets of an inventory from another source. Throws Error EINVAL that names file,
/// line and key.
[[nodiscard]] text::IdSet load_exclude(const Config& config, const rset::ResourceSet& resources,
                                       const Absent& absent = {});

/// Returns the hosts that `exclude` names; none where it names ranks. Throws as load_exclude() does.
[[nodiscard]] text::Hostlist excluded_hosts(const Config& config);

// Describes a configuration and its inventory in a few lines for people: the output of `resourced --check`.

/// Returns lines of `NAME: VALUE`, each with a newline; lists are compressed, absent parts are left out. Pass
/// null for a configuration without an inventory of its own.
[[nodiscard]] std::string describe(const Config& config, const Inventory* inventory);

}  // namespace resourced::config
