// How a leader commits batches, and finds that it does not lead any more.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/cluster/keys.hpp"
#include "core/cluster/member.hpp"
#include "core/cluster/roster.hpp"

namespace resourced::cluster {

using nlohmann::json;

namespace {

constexpr std::string_view another_is_ahead =
    "the store of another member has more events than the log in etcd, which was restored from an older "
    "backup";

}  // namespace

std::size_t Member::parts_of(const Batch& batch) const noexcept {
  if (batch.text.size() <= settings_.part_bytes) return 0;
  return (batch.text.size() + settings_.part_bytes - 1) / settings_.part_bytes;
}

Transaction Member::put_part() const {
  const Batch& batch = queue_.front();
  return guarded({Put{part_key(batch.last, epoch_, parts_put_),
                      batch.text.substr(parts_put_ * settings_.part_bytes, settings_.part_bytes)}});
}

Transaction Member::commit() const {
  const Batch& batch = queue_.front();
  const std::size_t parts = parts_of(batch);
  std::string value =
      json{{"first", batch.first}, {"epoch", epoch_}, {"parts", parts}, {"format", log_format}}.dump();
  value += '\n';
  if (parts == 0) value += batch.text;
  Transaction commit = guarded({Put{log_key(batch.last), std::move(value)},
                                Put{std::string(head_key), fmt::format("{}", batch.last)}});
  if (batch.holders) commit.then.emplace_back(Put{std::string(holders_key), *batch.holders});
  commit.guards.push_back({std::string(head_key), Guard::Field::modified, head_revision_});
  commit.guards.push_back({std::string(ahead_key), Guard::Field::created, 0});
  commit.otherwise = {Read{std::string(leader_key)}, Read{std::string(head_key)},
                      Read{std::string(ahead_key)}};
  return commit;
}

void Member::on_commit(const TransactionDone& done, BootTime now, Effects& effects) {
  if (done.held) return finish_batch(done.revision, effects);
  constexpr std::size_t reads = 3;
  check_found(done, reads);
  const std::vector<KeyValue>& leader = done.found[0];
  const std::vector<KeyValue>& head = done.found[1];
  if (leader.empty() || leader[0].created != epoch_) return end(effects, "another member leads");
  // Only this member moves the head in its epoch: an earlier attempt was carried out.
  if (!head.empty() && head[0].modified != head_revision_ && sequence_of(head[0]) == queue_.front().last)
    return finish_batch(head[0].modified, effects);
  retry_at_ = now;
  if (!done.found[2].empty()) return end(effects, std::string(another_is_ahead));
  end(effects, "the head of the log in etcd was changed by another program");
}

// The Read makes etcd ask its majority; without a Put it makes no revision.
Transaction Member::check(BootTime now) {
  std::vector<Operation> operations{Read{member_key(settings_.name)}};
  if (auto own = news(now)) operations.emplace_back(std::move(*own));
  Transaction check = guarded(std::move(operations));
  check.guards.push_back({std::string(ahead_key), Guard::Field::created, 0});
  check.otherwise = {Read{std::string(leader_key)}, Read{std::string(ahead_key)}};
  return check;
}

void Member::on_check(const TransactionDone& done, BootTime now, Effects& effects) {
  if (!done.held) {
    check_found(done, 2);
    const std::vector<KeyValue>& leader = done.found[0];
    const bool leads_still = !leader.empty() && leader[0].created == epoch_;
    return end(effects, leads_still ? std::string(another_is_ahead) : "another member leads");
  }
  check_found(done, 1);
  const bool is_there = !done.found[0].empty() && process_of(done.found[0][0]) == settings_.process;
  const bool was_told = telling_ != told_ || is_there;
  told_ = was_told ? telling_ : "";
  check_due_ = now + settings_.lease_ttl / 3;
  if (!compact_next_) compact_next_ = done.revision;
  if (done.revision - *compact_next_ < settings_.compact_after) return;
  compact_ = std::exchange(compact_next_, done.revision);
}

void Member::finish_batch(Revision head, Effects& effects) {
  head_revision_ = head;
  if (queue_.front().holders) holders_revision_ = head;
  applied_ = queue_.front().last;
  sizes_.add(applied_, queue_.front().text.size());
  effects.committed = applied_;
  queue_.pop_front();
  parts_put_ = 0;
  ++commits_;
}

}  // namespace resourced::cluster
