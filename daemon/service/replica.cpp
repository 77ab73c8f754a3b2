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

module::Event event_of(const log::Record& record) {
  return log::event_of({record.sequence, record.timestamp, record.text, false, nullptr, record.hidden,
                        record.of_ledger, record.rest},
                       [&](const std::string& name) {
                         const auto found = record.documents.find(name);
                         if (found == record.documents.end()) throw Error(EBADMSG, "a document is missing");
                         return found->second;
                       });
}

bool changes_inventory(const module::EventBody& event) {
  return std::holds_alternative<module::DefineEvent>(event) ||
         std::holds_alternative<module::RestartEvent>(event) ||
         std::holds_alternative<module::UpdateEvent>(event);
}

}  // namespace

text::IdSet Replica::take(const log::Record& record) {
  last_ = record.sequence;
  const std::uint64_t inventory = inventory_version_;
  text::IdSet ranks;
  try {
    const module::Event event = event_of(record);
    ranks = engine::concerned(event.body);
    if (changes_inventory(event.body)) ++inventory_version_;
    if (is_known_ && !record.snapshot) {
      module::require_next(state_, event.body);
      (void)module::apply(state_, event);
    }
  } catch (const Error& error) {
    if (std::exchange(is_known_, false)) {
      os::log_error("event {} of the leader cannot be applied, so the state is not known here: {}",
                    record.sequence, error.what());
    }
    state_ = {};
    ++inventory_version_;
  }
  if (record.snapshot) {
    state_ = *record.snapshot;
    ++inventory_version_;
    is_known_ = true;
  }
  // Keep the list of hosts while the inventory stays the same: unlike the other answers it has no sequence.
  proto::Payload hostlist = answers_.at(static_cast<std::size_t>(LogRead::hostlist));
  answers_.fill(nullptr);
  if (inventory == inventory_version_)
    answers_.at(static_cast<std::size_t>(LogRead::hostlist)) = std::move(hostlist);
  return ranks;
}

void Replica::require_state() const {
  if (!is_known_ || !state_.defined) throw Error(EAGAIN, "the inventory is not known yet");
}

proto::Payload Replica::read(LogRead what) {
  require_state();
  proto::Payload& answer = answers_.at(static_cast<std::size_t>(what));
  if (!answer) answer = proto::make_payload(proto::topics::encode_log_read(what, state_, last_));
  return answer;
}

}  // namespace resourced::daemon::service
