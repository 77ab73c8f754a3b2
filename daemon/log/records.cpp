#include "daemon/log/records.hpp"

#include <utility>

#include "os/sha256.hpp"

namespace resourced::daemon::log {

Record make_record(const engine::Record& record) {
  proto::Documents documents(os::sha256);
  Record row;
  row.sequence = record.sequence;
  row.timestamp = record.event.timestamp;
  row.name = proto::event_name(record.event.body);
  row.text = proto::encode_event(record.event);
  row.rest = proto::encode_rest(record.event, record.resources, documents);
  row.documents = documents.texts();
  row.hosts = record.hosts;
  row.resources = record.resources;
  row.audience = proto::audience_of(row.name);
  row.by = record.event.by;
  return row;
}

}  // namespace resourced::daemon::log
