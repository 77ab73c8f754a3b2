#include "core/nodes/monitored_target.hpp"

namespace resourced::nodes {

using text::IdSet;

MonitoredTarget* TargetPages::find(IdSet::Id rank) const {
  const auto page = pages_.find(rank / page_size);
  if (page == pages_.end()) return nullptr;
  MonitoredTarget& target = page->second->targets[rank % page_size];
  return target.known ? &target : nullptr;
}

MonitoredTarget& TargetPages::get(IdSet::Id rank) {
  std::unique_ptr<Page>& page = pages_[rank / page_size];
  if (!page) page = std::make_unique<Page>();
  MonitoredTarget& target = page->targets[rank % page_size];
  if (!target.known) {
    target.known = true;
    target.rank = rank;
    ++page->known;
    ++size_;
  }
  return target;
}

void TargetPages::erase(IdSet::Id rank) {
  const auto page = pages_.find(rank / page_size);
  page->second->targets[rank % page_size] = {};
  --size_;
  if (--page->second->known == 0) pages_.erase(page);
}

}  // namespace resourced::nodes
