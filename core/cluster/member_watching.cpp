// How a member that follows watches etcd, so that it looks at the log when there is something new. It looks
// now and then in any case: nothing depends on the watch but the time at which a change is noticed.
#include <algorithm>

#include "core/cluster/keys.hpp"
#include "core/cluster/member.hpp"

namespace resourced::cluster {

// `newest` is the last change that the look has found. A member of etcd that has lost the others, and an
// address that is not there any more, end no connection: the watch is silent.
void Member::tend_watch(Revision newest, BootTime now, Effects& effects) {
  if (watch_) {
    if (watch_->missed && watch_->told >= *watch_->missed) watch_->missed.reset();
    if (!watch_->missed && watch_->told < newest) {
      watch_->missed = newest;
      watch_->missed_at = now;
    }
    if (watch_->missed && now - watch_->missed_at >= settings_.silence) watch_.reset();
  }
  if (watch_ || now < watch_due_) return;
  watch_ = Watching{++last_id_, false, seen_};
  // The successor is named before the leader's key goes.
  effects.requests.emplace_back(last_id_,
                                Watch{std::string(head_key), std::string(leader_key) + '\0', seen_ + 1});
}

void Member::on_watch(const Outcome& outcome, BootTime now) {
  if (const auto* changed = std::get_if<Changed>(&outcome)) {
    watch_->is_in_place = true;
    watch_->told = std::max(watch_->told, changed->revision);
    if (changed->revision <= seen_) return;
    changed_ = std::max(changed_.value_or(0), changed->revision);
    due_ = std::min(due_, std::max({now, looked_at_ + settings_.pace, retry_at_}));
    return;
  }
  // The next one is from the revision of the next look.
  const bool was_in_place = watch_->is_in_place;
  watch_.reset();
  watch_due_ = now + (was_in_place ? settings_.poll : settings_.retry_refused);
  due_ = std::min(due_, std::max(now + settings_.poll, retry_at_));
}

}  // namespace resourced::cluster
