#include "daemon/cluster/following.hpp"

#include <utility>

#include "daemon/cluster/record_json.hpp"

namespace resourced::daemon::cluster {

void take_entry(const ::resourced::cluster::Batch& entry, store::EventLog& store,
                const std::function<void(const store::Record&)>& follow) {
  for (store::Record& record : decode_records(entry.text, entry.first, entry.last)) {
    follow(record);
    store.append(std::move(record));
  }
}

}  // namespace resourced::daemon::cluster
