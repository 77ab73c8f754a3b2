#include "daemon/service/stalled_answers.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "core/invariant.hpp"
#include "core/time.hpp"
#include "daemon/service/topics.hpp"

namespace resourced::daemon::service {

using proto::Message;
using proto::topics::LogRead;

namespace {

/// A time after the last event of any log: the year 9999.
constexpr WallTime end_of_log = wall_time(253402300799);

/// Returns the read of the log that answers a topic; nothing for resource.metrics.
std::optional<LogRead> read_of(std::string_view topic) {
  if (topic == "resource.status") return LogRead::status;
  if (topic == "resource.sched-status") return LogRead::sched_status;
  if (topic == "resource.get") return LogRead::inventory;
  if (topic == "attr.get") return LogRead::hostlist;
  return std::nullopt;
}

bool has_to_wait(const Message& response) {
  const Topic* topic = Topics::find(response.topic);
  return topic != nullptr && (topic->stalled == Stalled::waits || topic->stalled == Stalled::refused);
}

}  // namespace

void StalledAnswers::begin() {
  is_on_ = true;
  for (streams::Response& response :
       outbox_.withdraw([](const Message& message) { return !has_to_wait(message); })) {
    (void)take(response.to, response.message);
  }
}

bool StalledAnswers::take(proto::ClientId client, Message& response) {
  if (has_to_wait(response)) return false;
  const Topic* topic = Topics::find(response.topic);
  const bool is_replaced = topic != nullptr && topic->stalled == Stalled::from_log && response.errnum() == 0;
  if (!is_replaced) {
    send(client, std::move(response));
  } else if (const auto what = read_of(response.topic)) {
    read(*what, client, std::move(response));
  } else {
    send(client, proto::make_response(response, metrics_()));
  }
  return true;
}

void StalledAnswers::read(LogRead what, proto::ClientId client, Message response) {
  Read& read = reads_.at(static_cast<std::size_t>(what));
  if (read.payload && read.sequence == outbox_.committed())
    return send(client, proto::make_response(response, read.payload));
  peers::Clients::Client* known = clients_.find(client);
  if (known == nullptr) return;
  ++known->waiting;
  read.waiting.push_back({client, std::move(response)});
  if (!read.is_asked) ask(what);
}

void StalledAnswers::ask(LogRead what) {
  Read& read = reads_.at(static_cast<std::size_t>(what));
  read.is_asked = true;
  log_.read_past(
      {end_of_log, std::make_shared<std::atomic<bool>>(false)},
      [what](const module::State& states, log::Sequence last) {
        return proto::topics::encode_log_read(what, states, last);
      },
      [this, &read](log::EventLog::Past past) { on_read(read, std::move(past)); });
}

void StalledAnswers::on_read(Read& read, log::EventLog::Past past) {
  read.is_asked = false;
  // The read must not have an uncommitted event, which only this daemon's log would have.
  RESOURCED_INVARIANT(past.sequence <= outbox_.committed());
  // A log without events has no states: answer as a standby does that does not know the inventory yet.
  if (past.failure && past.failure->errnum() == ENODATA)
    past.failure = Error(EAGAIN, "the inventory is not known yet");
  if (!past.failure) {
    read.payload = proto::make_payload(std::move(past.text));
    read.sequence = past.sequence;
  }
  for (auto& [client, response] : std::exchange(read.waiting, {})) {
    peers::Clients::Client* known = clients_.find(client);
    if (known == nullptr) continue;
    --known->waiting;
    send(client, past.failure ? proto::make_error(response, *past.failure)
                              : proto::make_response(response, read.payload));
  }
}

void StalledAnswers::send(proto::ClientId client, Message message) {
  if (!outbox_.answer_at_once(client, std::move(message))) gone_(client);
}

}  // namespace resourced::daemon::service
