#include "daemon/streams/outbox.hpp"

#include <algorithm>

#include "core/invariant.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::daemon::streams {

void Outbox::push(log::Sequence after, Response response, SteadyTime now) {
  if (peers::Clients::Client* known = clients_.find(response.to)) ++known->waiting;
  push(Waiting{after, std::move(response), now});
}

void Outbox::push(log::Sequence after, Read read, SteadyTime now) {
  if (peers::Clients::Client* known = clients_.find(read.from)) ++known->waiting;
  // Later events of other clients may wait already.
  const auto place = std::ranges::upper_bound(waiting_, after, {}, &Waiting::after);
  waiting_.insert(place, Waiting{after, std::move(read), now});
}

void Outbox::push(log::Sequence after, Update update) { push(Waiting{after, std::move(update)}); }

void Outbox::push(Waiting waiting) {
  // Messages keep their order: none overtakes one that waits for an earlier event.
  RESOURCED_INVARIANT(waiting_.empty() || waiting_.back().after <= waiting.after);
  if (waiting_.empty() && waiting.after <= committed_) {
    deliver(waiting.after, std::move(waiting.outgoing));
  } else {
    waiting_.push_back(std::move(waiting));
  }
}

void Outbox::deliver(log::Sequence after, Outgoing outgoing) {
  if (auto* response = std::get_if<Response>(&outgoing)) {
    if (peers::Clients::Client* known = clients_.find(response->to)) --known->waiting;
    if (!clients_.send(response->to, std::move(response->message))) listener_.on_unreachable(response->to);
  } else if (const auto* read = std::get_if<Read>(&outgoing)) {
    if (peers::Clients::Client* known = clients_.find(read->from)) --known->waiting;
    listener_.on_read(*read);
  } else {
    listener_.on_update(after, std::get<Update>(outgoing));
  }
}

transport::SendResult Outbox::offer(log::Sequence after, proto::ClientId client,
                                    const proto::Message& message) {
  RESOURCED_INVARIANT(after <= committed_);
  return clients_.try_send(client, message);
}

void Outbox::offer_last(log::Sequence after, proto::ClientId client, proto::Message message) {
  RESOURCED_INVARIANT(after <= committed_);
  (void)clients_.send(client, std::move(message));
}

bool Outbox::answer_at_once(proto::ClientId client, proto::Message message) {
  return clients_.send(client, std::move(message));
}

void Outbox::committed(log::Sequence last, SteadyTime now) {
  RESOURCED_INVARIANT(last >= committed_);
  committed_ = last;
  while (!waiting_.empty() && waiting_.front().after <= committed_) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto* response = std::get_if<Response>(&next.outgoing))
      waits_.add(now, now - next.since, response->message.topic);
    if (const auto* read = std::get_if<Read>(&next.outgoing))
      waits_.add(now, now - next.since, read->request.topic);
    deliver(next.after, std::move(next.outgoing));
  }
}

void Outbox::abandon(const Error& error) {
  for (const Waiting& entry : std::exchange(waiting_, {})) {
    if (const auto* response = std::get_if<Response>(&entry.outgoing))
      clients_.send(response->to, proto::make_error(response->message, error));
    const auto* read = std::get_if<Read>(&entry.outgoing);
    if (read != nullptr && !read->request.has(proto::flag::noresponse))
      clients_.send(read->from, proto::make_error(read->request, error));
  }
}

void Outbox::flush() {
  for (const proto::ClientId client : clients_.flush()) listener_.on_unreachable(client);
}

Subscribers::HolderId Subscribers::add(proto::RequestKey request, bool numbered, bool causes) {
  subscribers_.emplace(++last_, Subscriber{request, {}, 0, numbered, causes, nullptr, 0});
  return last_;
}

void Subscribers::remove(HolderId holder) {
  subscribers_.erase(holder);
  dirty_.erase(holder);
}

void Subscribers::update(log::Sequence after, HolderId holder, const module::Delta& delta) {
  const auto found = subscribers_.find(holder);
  if (found == subscribers_.end()) return;
  Subscriber& subscriber = found->second;
  if (!subscriber.pending.empty()) ++merged_;
  subscriber.pending.merge(delta);
  subscriber.after = after;
  subscriber.response = nullptr;
  dirty_.insert(holder);
}

transport::SendResult Subscribers::tell(Subscriber& subscriber, WallTime now,
                                        const module::State& committed) {
  const proto::Message* request = registry_.request(subscriber.request);
  module::Delta& pending = subscriber.pending;
  if (pending.empty() || request == nullptr) return transport::SendResult::sent;
  if (!subscriber.response || subscriber.made != outbox_.committed()) {
    subscriber.made = outbox_.committed();
    // The outbox has passed on all changes up to this event.
    const auto sequence = subscriber.numbered ? std::optional(subscriber.made) : std::nullopt;
    // A target that left for good has no state that could be a cause.
    if (subscriber.causes) pending.cause = committed.causes_of(pending.down - pending.shrink);
    subscriber.response = proto::make_payload(proto::topics::encode_delta(pending, sequence, now));
  }
  return outbox_.offer(subscriber.after, subscriber.request.client,
                       proto::make_response(*request, subscriber.response));
}

std::vector<proto::ClientId> Subscribers::flush(WallTime now, const module::State& committed) {
  std::vector<proto::ClientId> gone;
  for (auto next = dirty_.begin(); next != dirty_.end();) {
    Subscriber& subscriber = subscribers_.at(*next);
    const transport::SendResult result = tell(subscriber, now, committed);
    if (result == transport::SendResult::full) {
      ++next;
      continue;
    }
    if (result == transport::SendResult::gone) gone.push_back(subscriber.request.client);
    subscriber.pending = module::Delta{};
    subscriber.response = nullptr;
    next = dirty_.erase(next);
  }
  return gone;
}

}  // namespace resourced::daemon::streams
