#include "daemon/takeover.hpp"

#include "core/module/rank_map.hpp"
#include "core/text/idset.hpp"

namespace resourced::daemon {

Seconds grace_at_restart(std::optional<WallTime> watched, WallTime now, Seconds grace, Seconds interval) {
  if (!watched) return Seconds(0);
  // After the clock was set back, `watched` says nothing about the time that has passed.
  const Seconds away = now - *watched;
  return away >= Seconds(0) && away <= grace + interval ? grace : Seconds(0);
}

text::IdSet online_before(const module::State& states, const rset::ResourceSet& next) {
  return module::RankMap(states.inventory, next)(states.targets.online - states.targets.torpid);
}

}  // namespace resourced::daemon
