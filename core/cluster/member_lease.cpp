// The lease of a member, and keys of other members whose lease is not there any more: a copy of etcd's keys
// has no leases, so nothing would ever delete them.
#include <algorithm>
#include <string>

#include "core/cluster/member.hpp"

namespace resourced::cluster {

void Member::tend_lease(BootTime now, Effects& effects) {
  if (lease_pending_ || now < lease_due_) return;
  lease_pending_ = Pending{++last_id_, now};
  if (lease_) {
    effects.requests.emplace_back(last_id_, KeepAlive{lease_->id});
  } else {
    effects.requests.emplace_back(last_id_, Grant{settings_.lease_ttl});
  }
}

void Member::on_lease(const Outcome& outcome, BootTime sent, BootTime now, Effects& effects) {
  if (role_ == Role::ended) return;
  constexpr double keep_alives_per_ttl = 3;
  const auto* done = std::get_if<LeaseDone>(&outcome);
  if (done != nullptr && done->ttl > Seconds(0)) {
    // Etcd has counted from some time after the request was sent.
    const bool is_new = !lease_;
    lease_ = Lease{done->lease, done->ttl, sent};
    lease_due_ = sent + done->ttl / keep_alives_per_ttl;
    if (is_new && is_put_refused_) refusal_.clear();
    return;
  }
  const auto* refused = std::get_if<Refused>(&outcome);
  const bool has_ended = done != nullptr || (refused != nullptr && refused->lease_has_ended);
  lease_due_ = now + settings_.retry;
  if (refused != nullptr && !has_ended) {
    note_refusal(refused->why, !lease_);
    // The lease may stay alive if a keepalive is accepted again, so it is asked for several times.
    constexpr double tries_per_ttl = 6;
    lease_due_ = now + std::min(settings_.retry_refused, settings_.lease_ttl / tries_per_ttl);
  }
  if (!has_ended) return;
  if (leads()) return end(effects, "its lease has ended");
  drop_lease();
}

void Member::note_refusal(const std::string& why, bool is_put) {
  refusal_ = why;
  is_put_refused_ = is_put;
}

// Another process may have the entry since.
void Member::drop_lease() {
  lease_.reset();
  entry_is_free_ = false;
}

bool Member::is_void(const KeyValue& key) const { return key.lease == 0 || gone_leases_.contains(key.lease); }

// Asks now and then for the leases of the leader and of another process with this member's name. The answer
// to a question is about the last suspect, so there is no further one until it has come.
void Member::suspect_leases(const std::vector<KeyValue>& leader, const std::vector<KeyValue>& own,
                            BootTime now) {
  if (now < suspect_due_ || suspect_pending_) return;
  for (const auto* found : {&leader, &own}) {
    if (found->empty() || is_void((*found)[0]) || (*found)[0].lease == (lease_ ? lease_->id : 0)) continue;
    suspects_.push_back((*found)[0].lease);
    suspect_due_ = now + settings_.lease_ttl;
  }
}

// The question goes beside other requests, as it must not delay a look after a commit.
void Member::tend_suspects(BootTime now, Effects& effects) {
  if (suspects_.empty() || suspect_pending_ || leads()) return;
  suspect_pending_ = Pending{++last_id_, now};
  effects.requests.emplace_back(last_id_, FindLease{suspects_.back()});
}

void Member::on_lease_found(const Outcome& outcome, BootTime now) {
  const auto* done = std::get_if<LeaseDone>(&outcome);
  const auto* refused = std::get_if<Refused>(&outcome);
  const bool is_gone =
      (done != nullptr && done->ttl <= Seconds(0)) || (refused != nullptr && refused->lease_has_ended);
  if (is_gone) {
    gone_leases_.insert(suspects_.back());
    due_ = now;
  }
  suspects_.pop_back();
}

}  // namespace resourced::cluster
