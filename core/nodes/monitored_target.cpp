#include "core/nodes/monitored_target.hpp"

#include <algorithm>

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
  RESOURCED_INVARIANT(page != pages_.end());
  MonitoredTarget& target = page->second->targets[rank % page_size];
  RESOURCED_INVARIANT(target.known && target.rank == rank);
  target = {};
  --size_;
  if (--page->second->known == 0) pages_.erase(page);
}

void FlapCounter::configure(std::size_t most, Seconds window) noexcept {
  most_ = most;
  window_ = window;
  if (most_ == 0) {
    falls_.clear();
    order_.clear();
  }
}

bool FlapCounter::fell(text::IdSet::Id rank, SteadyTime now) {
  if (most_ == 0) return false;
  const auto [found, fresh] = falls_.try_emplace(rank);
  Falls& falls = found->second;
  if (fresh) {
    falls.place = order_.insert(order_.end(), rank);
  } else {
    order_.splice(order_.end(), order_, falls.place);
  }
  falls.times.push_back(now);
  const auto recent =
      std::ranges::find_if(falls.times, [&](SteadyTime time) { return now - time <= window_; });
  falls.times.erase(falls.times.begin(), recent);
  RESOURCED_INVARIANT(falls_.size() == order_.size());
  if (falls.times.size() <= most_) return false;
  forget(rank);
  return true;
}

void FlapCounter::forget_before(SteadyTime now) {
  while (!order_.empty() && now - falls_.at(order_.front()).times.back() > window_) forget(order_.front());
}

void FlapCounter::forget(text::IdSet::Id rank) {
  const auto found = falls_.find(rank);
  if (found == falls_.end()) return;
  order_.erase(found->second.place);
  falls_.erase(found);
  RESOURCED_INVARIANT(falls_.size() == order_.size());
}

}  // namespace resourced::nodes
