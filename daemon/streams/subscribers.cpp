#include "daemon/streams/subscribers.hpp"

#include "proto/rpc.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::daemon::streams {

Subscribers::HolderId Subscribers::add(proto::RequestKey request) {
  subscribers_.emplace(++last_, Subscriber{request, {}, 0});
  return last_;
}

void Subscribers::remove(HolderId holder) {
  subscribers_.erase(holder);
  dirty_.erase(holder);
}

void Subscribers::update(store::Sequence after, HolderId holder, const module::Delta& delta) {
  const auto found = subscribers_.find(holder);
  if (found == subscribers_.end()) return;
  Subscriber& subscriber = found->second;
  if (!subscriber.pending.empty()) ++merged_;
  subscriber.pending.merge(delta);
  subscriber.after = after;
  dirty_.insert(holder);
}

transport::SendResult Subscribers::tell(const Subscriber& subscriber) {
  const proto::Message* request = registry_.request(subscriber.request);
  if (subscriber.pending.empty() || request == nullptr) return transport::SendResult::sent;
  const auto payload = proto::make_payload(proto::topics::encode_delta(subscriber.pending));
  return outbox_.offer(subscriber.after, subscriber.request.client, proto::make_response(*request, payload));
}

std::vector<proto::ClientId> Subscribers::flush() {
  std::vector<proto::ClientId> gone;
  for (auto next = dirty_.begin(); next != dirty_.end();) {
    Subscriber& subscriber = subscribers_.at(*next);
    const transport::SendResult result = tell(subscriber);
    if (result == transport::SendResult::full) {
      ++next;
      continue;
    }
    if (result == transport::SendResult::gone) gone.push_back(subscriber.request.client);
    subscriber.pending = module::Delta{};
    next = dirty_.erase(next);
  }
  return gone;
}

}  // namespace resourced::daemon::streams
