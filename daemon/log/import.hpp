// Imports an event log (RFC 18 lines of RFC 44 events) of another store or of a Flux instance
// (resource.eventlog): its drains, changes and removed targets become the state of the store, and its history
// is readable. A complete log (complete_log.hpp) gives the State itself, and all events their numbers.
#pragma once

#include <cstddef>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "core/module/partition.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

namespace resourced::daemon::log {

struct Imported {
  std::size_t events = 0;
  /// Targets that are drained at the end of the log.
  std::size_t drained = 0;
  /// Targets that the log names by rank alone, as Flux before 0.62 does: their hosts are taken from the
  /// configured inventory.
  text::IdSet assumed{};
  /// Number of events with a time after ImportOptions::now, which is stored in place of that time.
  std::size_t ahead = 0;
};

struct ImportOptions {
  /// The present time. The import uses it in place of later times, which come from a wrong clock: with such a
  /// time in the store, all later events would get it too.
  WallTime now{Seconds::max()};
  /// The configured expiration, which the log does not contain; the epoch for none.
  WallTime configured_expiration{};
  /// The configured inventory (null for none) and its partitions: a log is refused if a start with them would
  /// refuse its state or lose a part of it. The inventory is also the R of the log's definitions, as the log
  /// does not contain R.
  std::shared_ptr<const rset::ResourceSet> inventory = nullptr;
  std::vector<module::PartitionRule> partitions = {};
  /// Maximum number of bytes of a line, more than any event of a real log has: a nodelist of a million hosts
  /// that do not compress is about as long.
  std::size_t max_line = std::size_t{16} << 20;
};

/// Reads a log into the store of a state directory, which must hold no events yet. `name` is the name of the
/// input in errors. A log whose beginning was dropped (`truncate`) is refused, as it does not give the
/// present state. Of the options, a complete log is read with none. Throws Error that names the line, and
/// then leaves the store empty.
Imported import_events(std::istream& input, const std::string& name, const std::string& directory,
                       const ImportOptions& options);

}  // namespace resourced::daemon::log
