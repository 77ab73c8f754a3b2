#include "daemon/takeover.hpp"

#include "core/error.hpp"
#include "core/module/rank_map.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/store.hpp"
#include "os/log.hpp"

namespace resourced::daemon {

std::optional<module::Snapshot> last_states(log::Store& store) {
  try {
    return store.last_states();
  } catch (const Error& error) {
    os::log_warning("the states after the last event are not known: {}", error.what());
    return std::nullopt;
  }
}

text::IdSet online_before(const module::Snapshot& states, const rset::ResourceSet& next) {
  return module::RankMap(states.inventory, next)(states.states.online - states.states.torpid);
}

}  // namespace resourced::daemon
