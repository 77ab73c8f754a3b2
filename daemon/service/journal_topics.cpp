#include "daemon/service/journal_topics.hpp"

#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "os/log.hpp"
#include "proto/topics/journal.hpp"

namespace resourced::daemon::service {

JournalTopics::JournalTopics(const Committed& committed, const ClusterTopics& cluster, Requests& requests,
                             streams::Outbox& outbox, log::EventLog& log, std::size_t most,
                             transport::LoopHolds& holds, const Program& program, Deferral& deferral)
    : committed_(committed),
      cluster_(cluster),
      requests_(requests),
      holds_(holds),
      program_(program),
      deferral_(deferral),
      journal_(outbox, requests.registry(), log, most,
               [this] { deferral_.later(Seconds(0), [this] { on_room(); }); }) {}

void JournalTopics::follow(const Call& call, const std::optional<streams::JournalPosition>& position) {
  proto::topics::JournalRequest wanted = proto::topics::parse_journal(call.optional_object());
  if (wanted.after) cluster_.check_event(*wanted.after, committed_.last());
  requests_.keep(call, [&](proto::RequestKey key) {
    const streams::ConsumerId consumer =
        journal_.add(key, std::move(wanted), committed_.state().addressable(), call.sender.name, position);
    requests_.become(key, streams::JournalConsumer{consumer});
  });
  requests_.count_served(call);
}

void JournalTopics::on_committed(log::Sequence last) { journal_.committed(last); }

void JournalTopics::on_writable() {
  if (journal_.blocked()) flush();
}

void JournalTopics::flush() {
  journal_.wake();
  if (!is_due_) serve();
}

void JournalTopics::serve() {
  const transport::LoopHold hold(&holds_, "journal");
  const SteadyTime begun = program_.steady_now();
  Seconds pause = pace_.pause(begun);
  if (pause == Seconds(0)) {
    const streams::Journal::Slice slice = journal_.serve();
    for (const proto::ClientId client : slice.gone) requests_.forget_gone(client);
    for (const auto& [key, error] : slice.ended) {
      if (error.errnum() == EBADMSG) on_damaged_log(error);
      requests_.end(key, error);
    }
    const SteadyTime now = program_.steady_now();
    pace_.spent(now, now - begun, slice.bytes);
    if (!slice.more) return;
    pause = pace_.pause(now);
  }
  is_due_ = true;
  deferral_.later(pause, [this] {
    is_due_ = false;
    serve();
  });
}

// Logs the damage for the operator: the reader, who gets the error too, may be an ordinary user.
void JournalTopics::on_damaged_log(const Error& error) {
  if (const auto before = damages_.admit()) {
    os::log_error("a journal ended: {}{}", error.what(), *before);
  }
}

void JournalTopics::on_room() {
  journal_.answer_room();
  flush();
}

}  // namespace resourced::daemon::service
