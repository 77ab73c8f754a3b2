#include "daemon/streams/outbox.hpp"

#include "core/invariant.hpp"

namespace resourced::daemon::streams {

void Outbox::push(store::Sequence after, Outgoing outgoing) {
  // In order: nothing overtakes something that waits for an earlier event.
  RESOURCED_INVARIANT(waiting_.empty() || waiting_.back().first <= after);
  if (waiting_.empty() && after <= committed_) {
    deliver_(std::move(outgoing));
  } else {
    waiting_.emplace_back(after, std::move(outgoing));
  }
}

void Outbox::committed(store::Sequence last) {
  RESOURCED_INVARIANT(last >= committed_);
  committed_ = last;
  while (!waiting_.empty() && waiting_.front().first <= committed_) {
    Outgoing outgoing = std::move(waiting_.front().second);
    waiting_.pop_front();
    deliver_(std::move(outgoing));
  }
}

std::vector<Outgoing> Outbox::abandon() {
  std::vector<Outgoing> abandoned;
  abandoned.reserve(waiting_.size());
  for (auto& [after, outgoing] : waiting_) abandoned.push_back(std::move(outgoing));
  waiting_.clear();
  return abandoned;
}

}  // namespace resourced::daemon::streams
