#include "daemon/streams/waitups.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::daemon::streams {

void Waitups::add(proto::RequestKey request, std::size_t online) {
  if (waiting_ >= max_waiting) {
    throw Error(EBUSY, fmt::format("{} requests wait for targets to be online already", waiting_));
  }
  if (requests_[online].insert(request).second) ++waiting_;
}

void Waitups::remove(proto::RequestKey request, std::size_t online) {
  const auto same_count = requests_.find(online);
  if (same_count == requests_.end()) return;
  waiting_ -= same_count->second.erase(request);
  if (same_count->second.empty()) requests_.erase(same_count);
}

std::vector<proto::RequestKey> Waitups::take(std::size_t online) {
  const auto found = requests_.find(online);
  if (found == requests_.end()) return {};
  std::vector<proto::RequestKey> reached(found->second.begin(), found->second.end());
  requests_.erase(found);
  waiting_ -= reached.size();
  return reached;
}

std::vector<proto::RequestKey> Waitups::take_above(std::size_t online) {
  std::vector<proto::RequestKey> above;
  for (auto next = requests_.upper_bound(online); next != requests_.end(); next = requests_.erase(next)) {
    above.insert(above.end(), next->second.begin(), next->second.end());
  }
  waiting_ -= above.size();
  return above;
}

}  // namespace resourced::daemon::streams
