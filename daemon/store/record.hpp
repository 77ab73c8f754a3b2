// One event as the store keeps it: a line of the event log, and the rows of the present that it changes.
#pragma once

#include <memory>
#include <string>

#include "core/engine/record.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::daemon::store {

using engine::Sequence;
using engine::TableChanges;

struct Record {
  Sequence sequence = 0;
  /// Seconds since the Unix epoch.
  double timestamp = 0;
  std::string name;
  /// The event as one line of JSON.
  std::string text;
  /// The hosts that it concerns.
  Hostlist hosts;
  /// R as of a resource-define (RFC 44 has it beside the event); null for other events, and for a definition
  /// whose R is not known.
  std::shared_ptr<const std::string> resources;
  TableChanges changes;
};

}  // namespace resourced::daemon::store
