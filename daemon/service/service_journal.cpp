// resource.journal, and how its consumers get their turn: a slice at a time, at a pace while others are
// served.
#include <cerrno>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "daemon/service/service.hpp"
#include "proto/rpc.hpp"
#include "proto/topics/journal.hpp"

namespace resourced::daemon::service {

void Service::journal(proto::ClientId client, const proto::Message& request) {
  proto::JournalRequest wanted = proto::parse_journal(proto::parse_optional_object(request));
  const proto::RequestKey key = requests_.add(client, request);
  try {
    journal_.add(key, std::move(wanted), executor_.module().inventory(),
                 clients_.find(client)->principal.name);
  } catch (const Error&) {
    requests_.take(key);
    throw;
  }
  stats_.succeeded(request.topic);
}

void Service::flush_journal() {
  journal_.wake();
  if (!journal_is_due_) serve_journal();
}

void Service::serve_journal() {
  const transport::LoopHold hold(&holds_, "journal");
  const double begun = uptime_();
  double pause = journal_pace_.pause(begun);
  if (pause == 0) {
    const streams::Journal::Slice slice = journal_.serve();
    for (const proto::ClientId client : slice.gone) on_gone(client);
    for (const auto& [key, error] : slice.ended) {
      if (error.errnum() == EBADMSG) on_damaged_log(error);
      end_stream(key, error);
    }
    const double now = uptime_();
    journal_pace_.spent(now, now - begun, slice.bytes);
    if (!slice.more) return;
    pause = journal_pace_.pause(now);
  }
  journal_is_due_ = true;
  later_(pause, [this] {
    journal_is_due_ = false;
    serve_journal();
  });
}

// Logs the damage for the operator: the reader, who gets the error too, may be an ordinary user.
void Service::on_damaged_log(const Error& error) {
  if (const auto before = damages_.admit()) {
    spdlog::error("a journal ended: {} ({} more since the last such line)", error.what(), *before);
  }
}

void Service::on_journal_room() {
  journal_.answer_room();
  flush_journal();
}

}  // namespace resourced::daemon::service
