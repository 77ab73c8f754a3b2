#include "daemon/service/replica.hpp"

#include <cerrno>
#include <utility>

#include <spdlog/spdlog.h>

#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "daemon/store/past_reader.hpp"
#include "proto/event_json.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::service {
namespace {

std::optional<module::Event> event_of(const store::Record& record) {
  return store::event_of({record.sequence, record.timestamp, record.text, record.name == proto::define_name,
                          record.resources, record.hidden, record.of_ledger});
}

}  // namespace

Replica::Replica(std::optional<module::Snapshot> states, store::Sequence last)
    : is_known_(states.has_value()), last_(last) {
  if (states) states_ = std::move(*states);
}

text::IdSet Replica::take(const store::Record& record) {
  last_ = record.sequence;
  status_.reset();
  text::IdSet ranks;
  try {
    if (const auto event = event_of(record)) {
      ranks = engine::concerned(event->body);
      if (is_known_ && !record.snapshot) module::fold(*event, states_);
    }
  } catch (const Error& error) {
    if (std::exchange(is_known_, false)) {
      spdlog::error("event {} of the leader cannot be applied, so the state is not known here: {}",
                    record.sequence, error.what());
    }
    states_ = {};
  }
  if (record.snapshot) {
    states_ = *record.snapshot;
    is_known_ = true;
  }
  return ranks;
}

proto::Payload Replica::status() {
  if (!is_known_) throw Error(EAGAIN, "the inventory is not known yet");
  if (!status_) status_ = proto::make_payload(proto::topics::encode_status_after(states_, last_));
  return status_;
}

}  // namespace resourced::daemon::service
