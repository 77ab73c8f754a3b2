// Taking over an event log (RFC 18 lines of RFC 44 events), of another store or of a Flux instance
// (resource.eventlog): what was drained, changed or gone there is so here, and its history is readable.
#pragma once

#include <cstddef>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "core/module/partition.hpp"
#include "core/rset/resource_set.hpp"
#include "core/time.hpp"

namespace resourced::daemon::store {

struct Imported {
  std::size_t events = 0;
  /// Targets that are drained at the end of the log.
  std::size_t drained = 0;
};

struct ImportOptions {
  /// The expiration of the configuration that goes with the log, which does not tell it; the epoch for none.
  WallTime configured_expiration{};
  /// The inventory of the configuration, where it has one, and how it is divided: a log that a start on it
  /// could not take up as it is, is refused.
  std::shared_ptr<const rset::ResourceSet> inventory = nullptr;
  std::vector<module::PartitionRule> partitions = {};
  /// The bytes that a line may have. More than any event of a real log: a nodelist of a million hosts that do
  /// not compress is about as long.
  std::size_t max_line = std::size_t{16} << 20;
};

/// Reads a log into the store of a state directory, which must hold no events yet. `name` stands for the
/// input in errors. A log whose beginning was dropped (`truncate`) is refused: it does not tell the present.
/// Throws Error that names the line; the store is as empty as before then.
Imported import_events(std::istream& input, const std::string& name, const std::string& directory,
                       const ImportOptions& options);

}  // namespace resourced::daemon::store
