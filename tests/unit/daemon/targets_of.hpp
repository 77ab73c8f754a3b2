// Targets of a filter for the store alone, which knows them by their hosts.
#pragma once

#include <memory>
#include <string_view>

#include "daemon/journal_source.hpp"

namespace resourced::daemon {

/// `hosts` and `strangers` are hostlists.
inline std::shared_ptr<const EventTargets> targets_of(std::string_view hosts,
                                                      std::string_view strangers = {}) {
  return std::make_shared<const EventTargets>(
      EventTargets{Hostlist::parse(hosts), {}, Hostlist::parse(strangers)});
}

}  // namespace resourced::daemon
