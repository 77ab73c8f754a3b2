#include "daemon/streams/waitups.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::daemon::streams {

void Waitups::add(proto::RequestKey request, std::size_t online) {
  if (counts_.size() >= max_waiting) {
    throw Error(EBUSY, fmt::format("{} requests wait for targets to be online already", counts_.size()));
  }
  counts_.emplace(request, online);
  requests_[online].insert(request);
}

void Waitups::remove(proto::RequestKey request) {
  const auto found = counts_.find(request);
  if (found == counts_.end()) return;
  const auto same_count = requests_.find(found->second);
  same_count->second.erase(request);
  if (same_count->second.empty()) requests_.erase(same_count);
  counts_.erase(found);
}

std::vector<proto::RequestKey> Waitups::take(std::size_t online) {
  const auto found = requests_.find(online);
  if (found == requests_.end()) return {};
  std::vector<proto::RequestKey> reached(found->second.begin(), found->second.end());
  requests_.erase(found);
  for (const proto::RequestKey request : reached) counts_.erase(request);
  return reached;
}

std::vector<proto::RequestKey> Waitups::take_above(std::size_t online) {
  std::vector<proto::RequestKey> above;
  for (auto next = requests_.upper_bound(online); next != requests_.end(); next = requests_.erase(next)) {
    above.insert(above.end(), next->second.begin(), next->second.end());
  }
  for (const proto::RequestKey request : above) counts_.erase(request);
  return above;
}

}  // namespace resourced::daemon::streams
