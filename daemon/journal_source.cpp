#include "daemon/journal_source.hpp"

#include <utility>

#include "core/rset/targets.hpp"

namespace resourced::daemon {

EventTargets event_targets(std::string_view text, std::shared_ptr<const ResourceSet> inventory) {
  HostSearch search = parse_known_targets(text, *inventory);
  EventTargets targets{std::move(inventory), std::move(search.ranks), {}};
  for (const std::string& host : search.unknown) targets.strangers.append(host);
  return targets;
}

}  // namespace resourced::daemon
