#include "core/cluster/member.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/cluster/keys.hpp"
#include "core/invariant.hpp"

namespace resourced::cluster {

using nlohmann::json;

Effects Member::tick(BootTime now) {
  Effects effects;
  proceed(now, effects);
  return effects;
}

Effects Member::answer(RequestId id, const Outcome& outcome, BootTime now) {
  Effects effects;
  // An outcome that comes too late counts for nothing: another member may have answered clients since.
  if (leads() && now >= fence()) {
    proceed(now, effects);
    return effects;
  }
  try {
    if (lease_pending_ && lease_pending_->id == id) {
      const BootTime sent = lease_pending_->sent;
      lease_pending_.reset();
      on_lease(outcome, sent, now, effects);
    } else if (holders_pending_ && holders_pending_->id == id) {
      holders_pending_.reset();
      on_holders(outcome, now);
    } else if (suspect_pending_ && suspect_pending_->id == id) {
      suspect_pending_.reset();
      on_lease_found(outcome, now);
    } else if (pending_ && pending_->id == id) {
      pending_.reset();
      on_step(step_, outcome, now, effects);
    } else if (watch_ && watch_->id == id) {
      on_watch(outcome, now);
    }
  } catch (const Error& error) {
    fail(effects, error.errnum(), error.what());
  }
  proceed(now, effects);
  return effects;
}

Effects Member::commit(Batch batch, BootTime now) {
  RESOURCED_INVARIANT(leads() && !resigns_);
  RESOURCED_INVARIANT(batch.first == (queue_.empty() ? applied_ : queue_.back().last) + 1);
  if (batch.holders) next_holders_.reset();
  queue_.push_back(std::move(batch));
  return tick(now);
}

Effects Member::offer(Snapshot snapshot, BootTime now) {
  snapshots_.offer(std::move(snapshot), now);
  return tick(now);
}

Effects Member::set_busy(bool is_busy, BootTime now) {
  is_busy_ = is_busy;
  return tick(now);
}

Effects Member::resign(BootTime now, std::optional<std::string> successor) {
  resigns_ = true;
  successor_ = std::move(successor);
  return tick(now);
}

void Member::disconnect(BootTime now) {
  pending_.reset();
  lease_pending_.reset();
  watch_.reset();
  watch_due_ = {};
  snapshots_.withdraw();
  holders_pending_.reset();
  suspect_pending_.reset();
  entry_is_free_ = false;
  lease_due_ = std::min(lease_due_, now);
  due_ = std::min(due_, now);
}

std::optional<BootTime> Member::next_deadline() const {
  if (role_ == Role::ended) return std::nullopt;
  std::optional<BootTime> next;
  const auto at = [&next](BootTime time) { next = next ? std::min(*next, time) : time; };
  if (!lease_pending_) at(lease_due_);
  if (leads()) at(fence());
  if (may_put_holders()) at(holders_due_);
  if (!pending_ && !waits_for_holders()) {
    if (!leads()) {
      if (!is_busy_ || resigns_) at(due_);
    } else {
      const bool is_idle =
          queue_.empty() && !compact_ && !resigns_ && snapshots_.is_surveyed() && !snapshots_.is_putting();
      at(std::max(retry_at_, is_idle ? check_due_ : BootTime{}));
    }
  }
  return next;
}

void Member::proceed(BootTime now, Effects& effects) {
  if (leads() && now >= fence())
    return end(effects, "etcd has not confirmed the lease in time; another member may lead");
  if (role_ == Role::ended) return;
  tend_lease(now, effects);
  tend_holders(now, effects);
  tend_suspects(now, effects);
  if (pending_) return;
  if (leads()) return send_lead(now, effects);
  if (resigns_) {
    if (!lease_) return end(effects, "resigned");
    return send(Step::revoke, Revoke{lease_->id}, now, effects);
  }
  if (now < due_ || is_busy_) return;
  if (role_ == Role::joining) return send(Step::join, join(), now, effects);
  if (incomplete_) {
    const Batch& batch = incomplete_->batch;
    const std::string first = part_key(batch.last, incomplete_->epoch, incomplete_->read);
    const std::string after = part_key(batch.last, incomplete_->epoch, incomplete_->parts);
    return send(Step::part, Transaction{{}, {Read{first, after, settings_.page}}, {}}, now, effects);
  }
  if (restoring_) return send(Step::restore, restoring_->next(), now, effects);
  send(Step::look, look(now), now, effects);
}

void Member::send(Step step, Request request, BootTime now, Effects& effects) {
  step_ = step;
  const auto* transaction = std::get_if<Transaction>(&request);
  puts_ = transaction != nullptr && std::ranges::any_of(transaction->then, [](const Operation& operation) {
            return std::holds_alternative<Put>(operation);
          });
  pending_ = Pending{++last_id_, now};
  effects.requests.emplace_back(last_id_, std::move(request));
}

// In this order: a resignation waits for the queue, and housekeeping for both.
void Member::send_lead(BootTime now, Effects& effects) {
  if (now < retry_at_) return;
  if (!queue_.empty()) {
    const bool is_put = parts_put_ == parts_of(queue_.front());
    return send(is_put ? Step::commit : Step::put_part, is_put ? commit() : put_part(), now, effects);
  }
  if (resigns_ && successor_)
    return send(Step::name_successor, guarded({Put{std::string(successor_key), *successor_}}), now, effects);
  if (waits_for_holders()) return;
  if (resigns_) return send(Step::revoke, Revoke{lease_->id}, now, effects);
  if (compact_) return send(Step::compact, Compact{*compact_}, now, effects);
  if (now >= check_due_) return send(Step::check, check(now), now, effects);
  send_upkeep(now, effects);
}

void Member::send_upkeep(BootTime now, Effects& effects) {
  if (!snapshots_.is_surveyed()) return send(Step::survey, SnapshotKeeper::survey(), now, effects);
  if (snapshots_.asks(applied_, sizes_, now)) effects.wants_snapshot = true;
  if (snapshots_.is_putting()) {
    try {
      return send(Step::snapshot, snapshots_.next_put(), now, effects);
    } catch (const Error&) {
      snapshots_.decline(now);
    }
  }
  const bool is_due = commits_ >= settings_.trim_after || sizes_.bytes() > settings_.keep_bytes;
  if (!snapshots_.has_leftovers() && (!is_due || trim_bound() <= trimmed_)) return;
  trimmed_ = std::max(trimmed_, trim_bound());
  send(Step::trim, trim(), now, effects);
}

// Entries are removed up to this event.
Sequence Member::trim_bound() const {
  const auto beyond = [this](std::size_t times) {
    const Sequence most = settings_.keep * times;
    return std::max(applied_ > most ? applied_ - most : 0, sizes_.beyond(settings_.keep_bytes * times));
  };
  const Sequence unbound = snapshots_.has_failed() ? beyond(settings_.keep_without) : 0;
  return std::max(std::min(beyond(1), snapshots_.bound()), unbound);
}

Transaction Member::trim() const {
  std::vector<Operation> deletes = snapshots_.clean();
  deletes.emplace_back(Delete{log_key(0), log_key(trimmed_ + 1)});
  deletes.emplace_back(Delete{part_folder(0), part_folder(trimmed_ + 1)});
  return guarded(std::move(deletes));
}

// Steps

void Member::on_step(Step step, const Outcome& outcome, BootTime now, Effects& effects) {
  if (role_ == Role::ended) return;
  if (step == Step::revoke) return end(effects, "resigned");
  const auto* done = std::get_if<TransactionDone>(&outcome);
  if (step == Step::compact && !std::holds_alternative<Unknown>(outcome)) {
    // Refused: another user of this etcd has compacted further.
    compact_.reset();
    return;
  }
  if (done == nullptr) {
    const auto* refused = std::get_if<Refused>(&outcome);
    Seconds pause = settings_.retry;
    if (refused != nullptr && refused->lease_has_ended) {
      if (leads()) return end(effects, "its lease has ended");
      drop_lease();
      lease_due_ = now;
    } else if (refused != nullptr) {
      // Only an operator can help: a missing right, or a full etcd.
      note_refusal(refused->why, puts_);
      pause = settings_.retry_refused;
      if (puts_ && (step == Step::look || step == Step::check)) {
        tell_due_ = now + settings_.tell_refused;
        pause = settings_.retry;
      }
    } else if (std::holds_alternative<Unknown>(outcome)) {
      refusal_.clear();
    }
    if (step == Step::report_ahead && refused != nullptr) is_report_refused_ = true;
    if (step == Step::snapshot && refused != nullptr) snapshots_.decline(now);
    // A leader that cannot name its successor resigns like one that names nobody.
    if (step == Step::name_successor && refused != nullptr) successor_.reset();
    telling_ = told_;
    // The answer may have been too large.
    if (step == Step::look && !puts_) reach_ /= 8;
    due_ = retry_at_ = now + pause;
    return;
  }
  if (!is_put_refused_ || (puts_ && done->held)) refusal_.clear();
  switch (step) {
    case Step::join:
      return on_joined(*done, now, effects);
    case Step::look:
      return on_look(*done, now, effects);
    case Step::part:
      return on_part(*done, effects);
    case Step::restore:
      return on_restore(*done, now, effects);
    case Step::report_ahead:
    case Step::evict:
    case Step::campaign:
      // The next look finds the leader, as after an unknown outcome.
      due_ = now;
      return;
    case Step::put_part:
      if (!done->held) return end(effects, "another member leads");
      ++parts_put_;
      return;
    case Step::commit:
      return on_commit(*done, now, effects);
    case Step::check:
      return on_check(*done, now, effects);
    case Step::name_successor:
      if (!done->held) return end(effects, "another member leads");
      return successor_.reset();
    case Step::survey:
      return snapshots_.on_survey(*done, applied_);
    case Step::snapshot:
      if (!snapshots_.on_put(*done, now)) return end(effects, "another member leads");
      return;
    case Step::trim:
      if (!done->held) return end(effects, "another member leads");
      commits_ = 0;
      sizes_.drop(trimmed_);
      snapshots_.on_trim(trimmed_);
      snapshots_.on_clean();
      compact_ = done->revision;
      return;
    case Step::compact:
    case Step::revoke:
      return;
  }
}

Transaction Member::guarded(std::vector<Operation> then) const {
  return {{{std::string(leader_key), Guard::Field::created, epoch_}}, std::move(then), {}};
}

Put Member::own_entry() const {
  json entry{{"uri", settings_.uri},
             {"applied", applied_},
             {"version", settings_.version},
             {"process", settings_.process}};
  if (json files = encode_files(files_); !files.empty()) entry["files"] = std::move(files);
  return {member_key(settings_.name), entry.dump(), lease_ ? lease_->id : 0};
}

std::string Member::mark_of(const Put& own) { return fmt::format("{} {}", own.lease, own.value); }

std::optional<Put> Member::news(BootTime now) {
  if (now < tell_due_) return std::nullopt;
  Put own = own_entry();
  telling_ = mark_of(own);
  if (telling_ == told_) return std::nullopt;
  return own;
}

// A member without any events may begin a cluster that is not there, others only if they are told to.
Transaction Member::join() const {
  const std::vector<Operation> read{Read{std::string(id_key)}, Read{std::string(head_key)}};
  if (!founds_ && (cluster_ || applied_ > 0)) return {{}, read, {}};
  std::vector<Operation> found{Put{std::string(id_key), cluster_.value_or(settings_.process)}};
  if (applied_ > 0) found.emplace_back(Put{std::string(head_key), fmt::format("{}", applied_)});
  found.emplace_back(Delete{std::string(ahead_key), std::string(ahead_key) + '\0'});
  found.insert(found.end(), read.begin(), read.end());
  return {{{std::string(id_key), Guard::Field::created, 0}}, std::move(found), read};
}

void Member::on_joined(const TransactionDone& done, BootTime now, Effects& effects) {
  check_found(done, 2);
  const std::vector<KeyValue>& id = done.found[0];
  if (id.empty()) {
    if (cluster_) {
      throw Error(
          ENOENT,
          "etcd does not have the cluster that this store belongs to; restore etcd, or begin the cluster "
          "anew with resourced --cluster-init");
    }
    throw Error(
        ENOENT,
        "etcd has no cluster yet, and this store has events; resourced --cluster-init begins the cluster "
        "with them");
  }
  if (!cluster_ && applied_ > 0)
    throw Error(EEXIST,
                "this store has events of its own, and is not of this cluster; give it an empty store");
  if (cluster_ && *cluster_ != id[0].value)
    throw Error(EEXIST, "this store belongs to another cluster; give it an empty store");
  if (!cluster_ || founds_) effects.joined = cluster_ = id[0].value;
  role_ = Role::following;
  due_ = now;
}

void Member::leave() {
  role_ = Role::ended;
  pending_.reset();
  lease_pending_.reset();
  watch_.reset();
  holders_pending_.reset();
  next_holders_.reset();
}

void Member::end(Effects& effects, std::string why) {
  leave();
  effects.ended = std::move(why);
}

void Member::fail(Effects& effects, int errnum, const std::string& why) {
  leave();
  effects.failed = Error(errnum, why);
}

}  // namespace resourced::cluster
