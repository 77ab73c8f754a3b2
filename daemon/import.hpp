// Taking over the event log of a Flux instance (resource.eventlog, RFC 18 lines of RFC 44 events): what was
// drained there is drained here, and its history is readable.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

namespace resourced::daemon {

struct Imported {
  std::size_t events = 0;
  /// Hosts that are drained at the end of the log.
  std::size_t drained = 0;
};

/// Reads a log into the store of a state directory, which must hold no events yet. `name` stands for the
/// input in errors. Throws Error that names the line; the store is as empty as before then.
Imported import_events(std::istream& input, const std::string& name, const std::string& directory);

}  // namespace resourced::daemon
