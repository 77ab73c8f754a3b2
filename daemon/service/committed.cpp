#include "daemon/service/committed.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/past_reader.hpp"
#include "os/log.hpp"

namespace resourced::daemon::service {
namespace {

module::Event event_of(const log::Record& record) {
  return log::event_of(
      {record.sequence, record.timestamp, record.text, false, nullptr, record.audience, record.rest},
      [&](const std::string& name) {
        const auto found = record.documents.find(name);
        if (found == record.documents.end()) throw Error(EBADMSG, "a document is missing");
        return found->second;
      });
}

bool changes_inventory(const module::EventBody& event) {
  return std::holds_alternative<module::DefineEvent>(event) ||
         std::holds_alternative<module::RestartEvent>(event) || module::updates_inventory(event);
}

}  // namespace

void Committed::add(Event event) {
  if (changes_inventory(event.record.event.body)) inventory_change_ = event.record.sequence;
  waiting_.push_back(std::move(event));
}

text::IdSet Committed::follow(const log::Record& record, SteadyTime now) {
  Event next;
  next.record.sequence = record.sequence;
  next.since = now;
  next.is_followed = true;
  next.snapshot = record.snapshot;
  try {
    next.record.event = event_of(record);
  } catch (const Error& error) {
    next.failure = error;
  }
  text::IdSet ranks = next.failure ? text::IdSet() : engine::concerned(next.record.event.body);
  add(std::move(next));
  return ranks;
}

void Committed::apply(const Event& event) {
  last_ = event.record.sequence;
  const module::EventBody& body = event.record.event.body;
  if (event.snapshot || event.failure || changes_inventory(body)) ++inventory_version_;
  if (event.snapshot) {
    state_ = *event.snapshot;
    failure_.reset();
    return;
  }
  if (failure_) return;
  try {
    if (event.failure) throw Error(*event.failure);
    if (event.is_followed) module::require_next(state_, body);
    (void)module::apply(state_, event.record.event);
  } catch (const Error& error) {
    failure_ =
        Error(error.errnum(),
              fmt::format("event {} of the leader cannot be applied, so the state is not known here: {}",
                          last_, error.what()));
    os::log_error("{}", failure_->what());
    state_ = {};
    ++inventory_version_;
  }
}

}  // namespace resourced::daemon::service
