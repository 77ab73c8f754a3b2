// How a standby takes the log of its cluster.
#pragma once

#include <functional>

#include "core/cluster/member.hpp"
#include "daemon/store/event_log.hpp"
#include "daemon/store/records.hpp"

namespace resourced::daemon::cluster {

/// Appends the records of an entry of the log to the store of a standby, after `follow` has had each. Throws
/// Error EBADMSG that names the event if the entry cannot be read; then neither has had any.
void take_entry(const ::resourced::cluster::Batch& entry, store::EventLog& store,
                const std::function<void(const store::Record&)>& follow);

}  // namespace resourced::daemon::cluster
