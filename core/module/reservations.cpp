#include "core/module/reservations.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include <fmt/format.h>

#include "core/error.hpp"

namespace resourced::module {

void Reservations::begin(const std::vector<PartitionHolder>& holders, SteadyTime now) {
  kept_.clear();
  for (const PartitionHolder& holder : holders) kept_.insert_or_assign(holder.partition, holder.by);
  until_ = now + patience;
}

void Reservations::check(const std::string& partition, const std::optional<Actor>& by, SteadyTime now) const {
  if (now >= until_) return;
  const auto kept = kept_.find(partition);
  if (kept == kept_.end() || by == kept->second) return;
  const Seconds left = until_ - now;
  throw Error(EBUSY,
              fmt::format("{} kept for the former holder for another {:.0f} s, as this daemon has just taken "
                          "over: try again then",
                          partition.empty() ? "the resources are" : fmt::format("partition {} is", partition),
                          std::ceil(left.count())));
}

std::vector<PartitionHolder> Reservations::all(SteadyTime now) const {
  std::vector<PartitionHolder> all;
  if (now >= until_) return all;
  for (const auto& [partition, by] : kept_) all.push_back({partition, by});
  return all;
}

}  // namespace resourced::module
