#include "daemon/streams/subscribers.hpp"

#include <iterator>

#include "proto/rpc.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::daemon::streams {

Subscribers::HolderId Subscribers::add(proto::RequestKey request) {
  subscribers_.emplace(++last_, Subscriber{request, {}});
  holders_.emplace(request, last_);
  return last_;
}

std::optional<Subscribers::HolderId> Subscribers::remove(proto::RequestKey request) {
  const auto found = holders_.find(request);
  if (found == holders_.end()) return std::nullopt;
  const HolderId holder = found->second;
  holders_.erase(found);
  subscribers_.erase(holder);
  dirty_.erase(holder);
  return holder;
}

void Subscribers::update(HolderId holder, const Delta& delta) {
  const auto found = subscribers_.find(holder);
  if (found == subscribers_.end()) return;
  Delta& pending = found->second.pending;
  if (!pending.empty()) ++merged_;
  pending.merge(delta);
  dirty_.insert(holder);
}

transport::SendResult Subscribers::tell(Subscriber& subscriber) {
  const proto::Message* request = requests_.find(subscriber.request);
  if (subscriber.pending.empty() || request == nullptr) return transport::SendResult::sent;
  const auto payload = proto::make_payload(proto::encode_delta(subscriber.pending));
  return clients_.try_send(subscriber.request.client, proto::make_response(*request, payload));
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
    subscriber.pending = Delta{};
    next = dirty_.erase(next);
  }
  return gone;
}

}  // namespace resourced::daemon::streams
