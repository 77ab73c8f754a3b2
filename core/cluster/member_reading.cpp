// How a member looks at etcd: who leads, and the log as far as its replica lacks it.
#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/cluster/keys.hpp"
#include "core/cluster/member.hpp"
#include "core/cluster/roster.hpp"
#include "core/text/quote.hpp"

namespace resourced::cluster {

using nlohmann::json;

namespace {

constexpr Seconds between_telling{1};

Revision modified(const std::vector<KeyValue>& found) { return found.empty() ? 0 : found[0].modified; }

}  // namespace

Transaction Member::look(BootTime now) {
  looked_at_ = now;
  changed_.reset();
  Transaction look;
  look.then = {Read{std::string(leader_key)},    Read{std::string(head_key)},
               Read{std::string(successor_key)}, log_ahead(),
               Read{std::string(holders_key)},   Read{member_key(settings_.name)},
               Read{std::string(ahead_key)}};
  if (lease_ && entry_is_free_ && (!told_at_ || now - *told_at_ >= between_telling)) {
    if (auto own = news(now)) {
      look.then.emplace_back(std::move(*own));
      told_at_ = now;
    }
  }
  return look;
}

void Member::on_look(const TransactionDone& done, BootTime now, Effects& effects) {
  constexpr std::size_t reads = 7;
  check_found(done, reads);
  const bool was_bounded = reach_ > 0;
  seen_ = done.revision;
  const std::vector<KeyValue>& leader = done.found[0];
  const std::vector<KeyValue>& head = done.found[1];
  const std::vector<KeyValue>& own = done.found[5];
  const std::vector<KeyValue>& ahead = done.found[6];
  bool is_own = false;
  leader_.reset();
  if (!leader.empty() && !is_void(leader[0])) {
    leader_ = read_leader(leader[0]);
    is_own = leader_->process == settings_.process;
  }
  ahead_.reset();
  if (!ahead.empty()) {
    const json value = object_of(ahead[0].key, ahead[0].value);
    ahead_ = Ahead{text_of(ahead[0].key, value, "name"), number_of(ahead[0].key, value, "applied")};
  }
  tend_entry(own);
  tend_namesake(now);
  if (!is_own) suspect_leases(leader, own, now);
  const Sequence last = head_ = head.empty() ? 0 : sequence_of(head[0]);
  if (last < applied_) return report_ahead(head, ahead, now, effects);
  const std::vector<KeyValue>& entries = done.found[3];
  adapt_reach(entries, applied_ < last);
  due_ = now;
  if (applied_ < last && entries.empty() && !was_bounded) return lack_events(now);
  take_entries(entries, effects);
  is_abreast_ = applied_ == last && !incomplete_;
  // If etcd no more has the entry with the last event of the replica, there is nothing to compare.
  if (is_abreast_) is_compared_ = true;
  if (!is_abreast_) return;
  if (ahead_) return plan_look(leader.empty(), now);
  // The look may be from before the lease of the key has ended.
  const bool has_won = is_own && lease_ && lease_->id == campaigned_;
  if (has_won && now < fence() && !resigns_) return lead(done, now, effects);
  if (follows()) tend_watch(std::max(modified(leader), modified(head)), now, effects);
  plan_look(!leader_, now);
  leader_ ? vacant_since_.reset() : stand_for_election(done, now, effects);
}

// A look reads the entry before it puts one.
void Member::tend_entry(const std::vector<KeyValue>& found) {
  const bool is_put = told_at_ == looked_at_;
  const std::string owner = found.empty() || is_void(found[0]) ? "" : process_of(found[0]);
  entry_is_free_ = owner.empty() || owner == settings_.process;
  const bool is_there = owner == settings_.process || (entry_is_free_ && is_put);
  told_ = telling_ = is_there ? telling_ : "";
}

// The keys of a process that was killed stay for the rest of its lease, which etcd begins anew after an
// election of its own.
void Member::tend_namesake(BootTime now) {
  const bool is_named_twice = !entry_is_free_ || (follows() && leader_->name == settings_.name);
  if (!lease_ || resigns_ || !is_named_twice) return namesake_.reset();
  if (!namesake_ || now - namesake_->seen > lease_->ttl) namesake_ = Namesake{now, now};
  namesake_->seen = now;
  if (now - namesake_->since > 3 * lease_->ttl) {
    throw Error(EEXIST,
                fmt::format("another daemon of the cluster has the name {}: give each one a name of its own "
                            "([cluster] name)",
                            text::quoted(settings_.name)));
  }
}

// A bounded range costs etcd less: it visits all keys of a range, whatever the limit.
Read Member::log_ahead() const {
  std::string first = log_key(is_compared_ ? applied_ + 1 : applied_);
  if (reach_ == 0) return {std::move(first), end_of(log_folder), settings_.page};
  return {std::move(first), log_key(applied_ + reach_ + 1), reach_};
}

// By what the last look has read, as far as it did not read all there is.
void Member::adapt_reach(const std::vector<KeyValue>& found, bool is_behind) {
  if (found.empty()) {
    // The next batch is larger than the reach.
    if (is_behind) reach_ = 0;
    return;
  }
  std::size_t bytes = 0;
  for (const KeyValue& entry : found) bytes += entry.value.size();
  if (bytes > settings_.page_bytes) {
    reach_ = std::max<Sequence>(1, reach_ * settings_.page_bytes / bytes);
  } else if (bytes <= settings_.page_bytes / 2) {
    const Sequence events = last_in_entry(found.back().key) - applied_;
    reach_ = std::clamp(2 * std::max(reach_, events), settings_.least_reach, settings_.most_reach);
  }
}

// A vacancy is looked at more often, as the time of a hand-over may end without a change.
void Member::plan_look(bool is_vacant, BootTime now) {
  const bool is_watched = watch_ && watch_->is_in_place && !watch_->missed;
  due_ = now + (is_watched && !is_vacant ? settings_.watched_poll : settings_.poll);
  if (lease_ && entry_is_free_ && mark_of(own_entry()) != told_) {
    const BootTime next = told_at_ ? std::max(now + settings_.poll, *told_at_ + between_telling) : now;
    due_ = std::min(due_, std::max(next, tell_due_));
  }
  if (changed_ && *changed_ > seen_) due_ = std::max(now, looked_at_ + settings_.pace);
}

// Up to one whose text is in parts: the look after those reads the others again.
void Member::take_entries(const std::vector<KeyValue>& found, Effects& effects) {
  for (const KeyValue& entry : found) {
    if (!take_entry(entry)) return lack_events(due_);
    if (incomplete_->parts > 0) return;
    end_entry(effects);
  }
}

// A replica may have a part of the first one: its owner was killed before it had written all.
bool Member::take_entry(const KeyValue& entry) {
  const EntryHeader header = entry_header(entry);
  if (header.first > applied_ + 1) return false;
  if (header.parts > 0 && header.last == without_parts_)
    throw Garbled(part_key(header.last, header.epoch, 0));
  incomplete_ = {{header.first, header.last, entry.value.substr(header.text)}, header.epoch, header.parts};
  return true;
}

void Member::end_entry(Effects& effects) {
  applied_ = incomplete_->batch.last;
  is_compared_ = true;
  sizes_.add(applied_, incomplete_->batch.text.size());
  if (applied_ > settings_.keep) sizes_.drop(applied_ - settings_.keep);
  effects.entries.push_back(std::move(incomplete_->batch));
  incomplete_.reset();
}

// Snapshots

void Member::lack_events(BootTime now) {
  restoring_.emplace(settings_.snapshots);
  due_ = now;
}

void Member::on_restore(const TransactionDone& done, BootTime now, Effects& effects) {
  SnapshotReading::Step step = restoring_->on_read(done, applied_);
  waits_for_snapshot_ = step.is_missing;
  if (step.is_missing) {
    // The leader makes one. Meanwhile it may be replaced.
    constexpr Seconds between_looks{1};
    restoring_.reset();
    due_ = now + between_looks;
    return;
  }
  due_ = now;
  effects.restores = step.begun;
  if (step.chunk) effects.chunks.push_back(*std::move(step.chunk));
  if (!step.is_done) return;
  role_ = Role::ended;
  lease_pending_.reset();
  effects.restored = true;
}

void Member::on_part(const TransactionDone& done, Effects& effects) {
  check_found(done, 1);
  if (done.found[0].empty()) {
    // Removed with its entry: the next look finds that this replica is too far behind.
    without_parts_ = incomplete_->batch.last;
    return incomplete_.reset();
  }
  for (const KeyValue& part : done.found[0]) {
    if (part.key != part_key(incomplete_->batch.last, incomplete_->epoch, incomplete_->read))
      throw Garbled(part.key);
    incomplete_->batch.text += part.value;
    ++incomplete_->read;
  }
  if (incomplete_->read < incomplete_->parts) return;
  end_entry(effects);
}

}  // namespace resourced::cluster
