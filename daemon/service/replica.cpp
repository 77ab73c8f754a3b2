#include "daemon/service/replica.hpp"

#include <cerrno>
#include <cstddef>
#include <utility>
#include <variant>

#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "daemon/log/past_reader.hpp"
#include "os/log.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon::service {

using proto::topics::LogRead;

namespace {

std::optional<module::Event> event_of(const log::Record& record) {
  return log::event_of({record.sequence, record.timestamp, record.text, record.name == proto::define_name,
                        record.resources, record.hidden, record.of_ledger});
}

bool changes_inventory(const module::EventBody& event) {
  return std::holds_alternative<module::DefineEvent>(event) ||
         std::holds_alternative<module::RestartEvent>(event) ||
         std::holds_alternative<module::UpdateEvent>(event);
}

}  // namespace

Replica::Replica(std::optional<module::Snapshot> states, log::Sequence last)
    : is_known_(states.has_value()), last_(last) {
  if (states) states_ = std::move(*states);
}

text::IdSet Replica::take(const log::Record& record) {
  last_ = record.sequence;
  const std::uint64_t inventory = inventory_version_;
  text::IdSet ranks;
  try {
    if (const auto event = event_of(record)) {
      ranks = engine::concerned(event->body);
      if (changes_inventory(event->body)) ++inventory_version_;
      if (is_known_ && !record.snapshot) module::fold(*event, states_);
    }
  } catch (const Error& error) {
    if (std::exchange(is_known_, false)) {
      os::log_error("event {} of the leader cannot be applied, so the state is not known here: {}",
                    record.sequence, error.what());
    }
    states_ = {};
    ++inventory_version_;
  }
  if (record.snapshot) {
    states_ = *record.snapshot;
    ++inventory_version_;
    is_known_ = true;
  }
  // The list of hosts has no sequence.
  proto::Payload hostlist = answers_.at(static_cast<std::size_t>(LogRead::hostlist));
  answers_.fill(nullptr);
  if (inventory == inventory_version_)
    answers_.at(static_cast<std::size_t>(LogRead::hostlist)) = std::move(hostlist);
  return ranks;
}

void Replica::require_states() const {
  if (!is_known_) throw Error(EAGAIN, "the inventory is not known yet");
}

proto::Payload Replica::read(LogRead what) {
  require_states();
  proto::Payload& answer = answers_.at(static_cast<std::size_t>(what));
  if (!answer) answer = proto::make_payload(proto::topics::encode_log_read(what, states_, last_));
  return answer;
}

}  // namespace resourced::daemon::service
