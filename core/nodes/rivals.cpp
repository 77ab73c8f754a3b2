#include "core/nodes/rivals.hpp"

#include <fmt/format.h>

namespace resourced::nodes {

using text::IdSet;

bool Rivals::replaced(IdSet::Id rank, const Speaker& former, const Speaker& next, SteadyTime now) {
  // One client said hello for its host again.
  if (former.connection == next.connection) return false;
  const auto earlier = turns_.find(rank);
  const bool came_back = earlier != turns_.end() && earlier->second.lost.connection == next.connection;
  turns_[rank] = {former, next, now};
  order_.emplace_back(now, rank);
  if (!came_back || targets_.contains(rank)) return false;
  targets_.insert(rank);
  ++version_;
  return true;
}

std::map<IdSet::Id, std::string> Rivals::origins() const {
  std::map<IdSet::Id, std::string> origins;
  targets_.for_each([&](IdSet::Id rank) {
    const Turn& turn = turns_.at(rank);
    origins.emplace(rank, fmt::format("{} and {}", turn.lost.origin, turn.present.origin));
  });
  return origins;
}

IdSet Rivals::expire(SteadyTime now) {
  IdSet apart_now;
  for (; !order_.empty() && order_.front().first + apart <= now; order_.pop_front()) {
    const auto [at, rank] = order_.front();
    const auto turn = turns_.find(rank);
    if (turn == turns_.end() || turn->second.at != at) continue;
    turns_.erase(turn);
    if (!targets_.contains(rank)) continue;
    targets_.erase(rank);
    apart_now.insert(rank);
    ++version_;
  }
  return apart_now;
}

std::optional<SteadyTime> Rivals::next_deadline() const {
  if (order_.empty()) return std::nullopt;
  return order_.front().first + apart;
}

void Rivals::forget(const IdSet& ranks) {
  ranks.for_each([&](IdSet::Id rank) { turns_.erase(rank); });
  if ((targets_ & ranks).empty()) return;
  targets_ -= ranks;
  ++version_;
}

void Rivals::clear() {
  turns_.clear();
  order_.clear();
  if (!targets_.empty()) ++version_;
  targets_ = {};
}

}  // namespace resourced::nodes
