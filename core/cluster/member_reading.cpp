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

namespace resourced::cluster {

using nlohmann::json;

namespace {

constexpr Seconds between_telling{1};

std::string mark_of(const Put& own) { return fmt::format("{} {}", own.lease, own.value); }

Revision modified(const std::vector<KeyValue>& found) { return found.empty() ? 0 : found[0].modified; }

}  // namespace

Transaction Member::look(SteadyTime now) {
  looked_at_ = now;
  changed_.reset();
  Transaction look;
  look.then = {Read{std::string(leader_key)}, Read{std::string(head_key)}, Read{std::string(successor_key)},
               Read{log_key(applied_ + 1), end_of("log"), settings_.page}};
  if (lease_ && now - told_at_ >= between_telling) {
    const Put own = own_entry();
    telling_ = mark_of(own);
    if (telling_ != told_) {
      look.then.emplace_back(own);
      told_at_ = now;
    }
  }
  return look;
}

void Member::on_look(const TransactionDone& done, SteadyTime now, Effects& effects) {
  constexpr std::size_t reads = 4;
  check_found(done, reads);
  told_ = telling_;
  seen_ = done.revision;
  const std::vector<KeyValue>& leader = done.found[0];
  const std::vector<KeyValue>& head = done.found[1];
  const std::vector<KeyValue>& successor = done.found[2];
  bool is_own = false;
  leader_.reset();
  if (!leader.empty()) {
    leader_ = read_leader(leader[0]);
    is_own = leader_->process == settings_.process;
  }
  const Sequence last = head.empty() ? 0 : sequence_of(head[0]);
  if (last < applied_) {
    throw Error(
        ESTALE,
        fmt::format("the log in etcd ends with event {}, and this store with {}: etcd was restored from an "
                    "older backup",
                    last, applied_));
  }
  read_.assign(done.found[3].begin(), done.found[3].end());
  if (applied_ < last && read_.empty()) {
    throw Error(ESTALE,
                fmt::format("event {} is not in etcd any more: this store is too far behind; give it a "
                            "copy of another member's store",
                            applied_ + 1));
  }
  take_entries(effects);
  due_ = now;
  if (applied_ < last || incomplete_) return;
  if (is_own && lease_ && now < fence() && !resigns_) {
    role_ = Role::leading;
    epoch_ = leader[0].created;
    head_revision_ = modified(head);
    check_due_ = retry_at_ = now;
    watch_.reset();
    effects.leads = true;
    return;
  }
  if (follows()) tend_watch(std::max(modified(leader), modified(head)), now, effects);
  plan_look(leader.empty(), now);
  if (!leader.empty()) {
    vacant_since_.reset();
    return;
  }
  if (!vacant_since_) vacant_since_ = now;
  const bool is_left_to_another = !successor.empty() && successor[0].value != settings_.name &&
                                  now - *vacant_since_ < settings_.hand_over;
  if (lease_ && now < fence() && !resigns_ && !is_left_to_another)
    send(Step::campaign, campaign(), now, effects);
}

// A vacancy is looked at more often, as the time of a hand-over may end without a change.
void Member::plan_look(bool is_vacant, SteadyTime now) {
  const bool is_watched = watch_ && watch_->is_in_place && !watch_->missed;
  due_ = now + (is_watched && !is_vacant ? settings_.watched_poll : settings_.poll);
  if (lease_ && mark_of(own_entry()) != told_)
    due_ = std::min(due_, std::max(now + settings_.poll, told_at_ + between_telling));
  if (changed_ && *changed_ > seen_) due_ = std::max(now, looked_at_ + settings_.pace);
}

void Member::take_entries(Effects& effects) {
  while (!read_.empty() && !incomplete_) {
    take_entry(read_.front());
    read_.pop_front();
    if (incomplete_->parts > 0) return;
    applied_ = incomplete_->batch.last;
    effects.entries.push_back(std::move(incomplete_->batch));
    incomplete_.reset();
  }
}

void Member::take_entry(const KeyValue& entry) {
  const std::size_t line = entry.value.find('\n');
  if (line == std::string::npos) throw Garbled(entry.key);
  const json header = object_of(entry.key, std::string_view(entry.value).substr(0, line));
  Incomplete next;
  next.batch.first = number_of(entry.key, header, "first");
  next.epoch = static_cast<Revision>(number_of(entry.key, header, "epoch"));
  next.parts = number_of(entry.key, header, "parts");
  next.batch.last = sequence_of({"", entry.key.substr(std::min(entry.key.size(), log_key(0).find('/') + 1))});
  next.batch.text = entry.value.substr(line + 1);
  if (next.batch.first != applied_ + 1 || next.batch.last < next.batch.first) {
    throw Error(ESTALE,
                fmt::format("the log in etcd goes from event {} to {}: this store is too far behind; give "
                            "it a copy of another member's store",
                            applied_, next.batch.first));
  }
  incomplete_ = std::move(next);
}

void Member::on_part(const TransactionDone& done, Effects& effects) {
  check_found(done, 1);
  // Removed meanwhile: the next look finds that this replica is too far behind.
  if (done.found[0].empty()) return incomplete_.reset();
  for (const KeyValue& part : done.found[0]) {
    if (part.key != part_key(incomplete_->batch.last, incomplete_->epoch, incomplete_->read))
      throw Garbled(part.key);
    incomplete_->batch.text += part.value;
    ++incomplete_->read;
  }
  if (incomplete_->read < incomplete_->parts) return;
  applied_ = incomplete_->batch.last;
  effects.entries.push_back(std::move(incomplete_->batch));
  incomplete_.reset();
  // The next look reads the others again.
  read_.clear();
}

}  // namespace resourced::cluster
