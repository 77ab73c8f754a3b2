#include "core/module/reservations.hpp"

namespace resourced::module {

void Reservations::begin(const std::vector<PartitionHolder>& holders, SteadyTime now) {
  kept_.clear();
  for (const PartitionHolder& holder : holders) kept_.insert_or_assign(holder.partition, holder.by);
  until_ = now + patience;
}

std::optional<Reservations::Reserved> Reservations::against(const std::string& partition,
                                                            const std::optional<Actor>& by,
                                                            SteadyTime now) const {
  if (now >= until_) return std::nullopt;
  const auto kept = kept_.find(partition);
  if (kept == kept_.end() || by == kept->second) return std::nullopt;
  return Reserved{kept->second, until_};
}

std::vector<PartitionHolder> Reservations::all(SteadyTime now) const {
  std::vector<PartitionHolder> all;
  if (now >= until_) return all;
  for (const auto& [partition, by] : kept_) all.push_back({partition, by});
  return all;
}

}  // namespace resourced::module
