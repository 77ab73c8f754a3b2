#include "daemon/streams/outbox.hpp"

#include "core/invariant.hpp"
#include "proto/rpc.hpp"

namespace resourced::daemon::streams {

void Outbox::push(store::Sequence after, Outgoing outgoing) {
  // In order: nothing overtakes something that waits for an earlier event.
  RESOURCED_INVARIANT(waiting_.empty() || waiting_.back().first <= after);
  if (const auto* response = std::get_if<Response>(&outgoing)) {
    if (peers::Clients::Client* known = clients_.find(response->to)) ++known->waiting;
  }
  if (waiting_.empty() && after <= committed_) {
    deliver(after, std::move(outgoing));
  } else {
    waiting_.emplace_back(after, std::move(outgoing));
  }
}

void Outbox::deliver(store::Sequence after, Outgoing outgoing) {
  if (auto* response = std::get_if<Response>(&outgoing)) {
    if (peers::Clients::Client* known = clients_.find(response->to)) --known->waiting;
    if (!clients_.send(response->to, std::move(response->message))) listeners_.gone(response->to);
  } else {
    listeners_.updated(after, std::get<Update>(outgoing));
  }
}

transport::SendResult Outbox::offer(store::Sequence after, proto::ClientId client,
                                    const proto::Message& message) {
  RESOURCED_INVARIANT(after <= committed_);
  return clients_.try_send(client, message);
}

void Outbox::offer_last(store::Sequence after, proto::ClientId client, proto::Message message) {
  RESOURCED_INVARIANT(after <= committed_);
  (void)clients_.send(client, std::move(message));
}

bool Outbox::answer_at_once(proto::ClientId client, proto::Message message) {
  return clients_.send(client, std::move(message));
}

void Outbox::committed(store::Sequence last) {
  RESOURCED_INVARIANT(last >= committed_);
  committed_ = last;
  while (!waiting_.empty() && waiting_.front().first <= committed_) {
    auto [after, outgoing] = std::move(waiting_.front());
    waiting_.pop_front();
    deliver(after, std::move(outgoing));
  }
}

void Outbox::abandon(const Error& error) {
  for (auto& [after, outgoing] : std::exchange(waiting_, {})) {
    const auto* response = std::get_if<Response>(&outgoing);
    if (response != nullptr) clients_.send(response->to, proto::make_error(response->message, error));
  }
}

void Outbox::flush() {
  for (const proto::ClientId client : clients_.flush()) listeners_.gone(client);
}

}  // namespace resourced::daemon::streams
