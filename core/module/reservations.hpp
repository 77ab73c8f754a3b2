// Reserves resources after a takeover in a cluster: the schedulers of the former leader have lost their
// connections, and with them their resources, which no other scheduler may acquire for some seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/module/actor.hpp"
#include "core/time.hpp"

namespace resourced::module {

/// The holder of a partition, or of the targets in no partition if the name is empty.
struct PartitionHolder {
  std::string partition;
  Actor by;
  friend bool operator==(const PartitionHolder&, const PartitionHolder&) = default;
};

class Reservations {
 public:
  /// Time for the former holders to acquire again.
  static constexpr Seconds patience{10};

  /// Reserves the partitions for these holders.
  void begin(const std::vector<PartitionHolder>& holders, SteadyTime now);
  /// The actor for whom a partition is reserved, and the time at which that ends.
  struct Reserved {
    Actor holder;
    SteadyTime until{};
    friend bool operator==(const Reserved&, const Reserved&) = default;
  };
  /// Returns the reservation of a partition for another actor than `by`; nothing if there is none.
  [[nodiscard]] std::optional<Reserved> against(const std::string& partition, const std::optional<Actor>& by,
                                                SteadyTime now) const;
  /// Ends the reservation of a partition whose holder is back.
  void end(const std::string& partition) { kept_.erase(partition); }
  /// Returns the reservations that are still in force.
  [[nodiscard]] std::vector<PartitionHolder> all(SteadyTime now) const;

 private:
  std::map<std::string, Actor> kept_;
  SteadyTime until_{};
};

}  // namespace resourced::module
