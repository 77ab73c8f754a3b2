// After a takeover in a cluster the schedulers of the former leader have lost their connections, and with
// them their resources. For some seconds, nobody else may acquire what they held.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/module/actor.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// The holder of a partition, or with an empty name of the targets that are in none.
struct PartitionHolder {
  std::string partition;
  Actor by;
  friend bool operator==(const PartitionHolder&, const PartitionHolder&) = default;
};

class Reservations {
 public:
  /// How long former holders may take to acquire again.
  static constexpr Seconds patience{10};

  /// Keeps the partitions for these holders.
  void begin(const std::vector<PartitionHolder>& holders, SteadyTime now);
  /// Throws Error EBUSY with the time that is left if the partition is kept for another one than `by`.
  void check(const std::string& partition, const std::optional<Actor>& by, SteadyTime now) const;
  /// The holder of the partition is back.
  void end(const std::string& partition) { kept_.erase(partition); }
  /// Those that are still in force.
  [[nodiscard]] std::vector<PartitionHolder> all(SteadyTime now) const;

 private:
  std::map<std::string, Actor> kept_;
  SteadyTime until_{};
};

}  // namespace resourced::module
