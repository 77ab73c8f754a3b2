// How a leader tells its successor which schedulers hold resources: in the commit of the events by which that
// changes, otherwise beside the commits, one put at a time.
#include <algorithm>
#include <utility>

#include "core/cluster/keys.hpp"
#include "core/cluster/member.hpp"

namespace resourced::cluster {

Effects Member::keep_holders(std::string text, BootTime now) {
  if (!leads() || is_over()) return {};
  next_holders_ = std::move(text);
  return tick(now);
}

bool Member::may_put_holders() const {
  return next_holders_ && !holders_pending_ &&
         std::ranges::none_of(queue_, [](const Batch& batch) { return batch.holders.has_value(); });
}

// Guarded by the revision of the key as well, so that an earlier put that comes late changes nothing.
void Member::tend_holders(BootTime now, Effects& effects) {
  if (now < holders_due_ || !may_put_holders()) return;
  put_holders_ = *next_holders_;
  Transaction put = guarded({Put{std::string(holders_key), put_holders_}});
  put.guards.push_back({std::string(holders_key), Guard::Field::modified, holders_revision_});
  put.otherwise = {Read{std::string(leader_key)}, Read{std::string(holders_key)}};
  holders_pending_ = Pending{++last_id_, now};
  effects.requests.emplace_back(last_id_, std::move(put));
}

void Member::on_holders(const Outcome& outcome, BootTime now) {
  const auto* done = std::get_if<TransactionDone>(&outcome);
  if (done == nullptr) {
    holders_due_ = now + settings_.retry;
    // Only an operator can help. The next change is tried again.
    if (std::holds_alternative<Refused>(outcome) && next_holders_ == put_holders_) next_holders_.reset();
    return;
  }
  if (done->held) {
    holders_revision_ = done->revision;
    if (next_holders_ == put_holders_) next_holders_.reset();
    return;
  }
  check_found(*done, 2);
  const std::vector<KeyValue>& leader = done->found[0];
  const std::vector<KeyValue>& holders = done->found[1];
  // The next commit or check finds that another member leads.
  if (leader.empty() || leader[0].created != epoch_) return next_holders_.reset();
  holders_revision_ = holders.empty() ? 0 : holders[0].modified;
}

}  // namespace resourced::cluster
