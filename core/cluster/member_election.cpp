// How a member begins to lead: it is elected if nobody leads, and if no store has more events than the log.
#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/cluster/keys.hpp"
#include "core/cluster/member.hpp"
#include "core/cluster/roster.hpp"
#include "core/json/utf8.hpp"

namespace resourced::cluster {

using nlohmann::json;

void Member::lead(const TransactionDone& look, BootTime now, Effects& effects) {
  const auto modified = [](const std::vector<KeyValue>& found) {
    return found.empty() ? 0 : found[0].modified;
  };
  role_ = Role::leading;
  epoch_ = look.found[0][0].created;
  snapshots_.lead(epoch_);
  head_revision_ = modified(look.found[1]);
  const std::vector<KeyValue>& holders = look.found[4];
  holders_ = holders.empty() ? "" : holders[0].value;
  holders_revision_ = modified(holders);
  check_due_ = retry_at_ = now;
  watch_.reset();
  effects.leads = true;
}

void Member::stand_for_election(const TransactionDone& look, BootTime now, Effects& effects) {
  const std::vector<KeyValue>& leader = look.found[0];
  const std::vector<KeyValue>& successor = look.found[2];
  if (!vacant_since_) vacant_since_ = now;
  const bool is_left_to_another = !successor.empty() && successor[0].value != settings_.name &&
                                  now - *vacant_since_ < settings_.hand_over;
  if (!lease_ || now >= fence() || resigns_ || is_left_to_another) return;
  if (!leader.empty()) {
    effects.warning = fmt::format(
        "etcd has the key leader without a lease, as after a copy of its keys: this daemon deletes the key, "
        "which would never expire ({})",
        json_text::printable_line(leader[0].value));
    return send(Step::evict, evict(leader[0]), now, effects);
  }
  campaigned_ = lease_->id;
  send(Step::campaign, campaign(), now, effects);
}

Transaction Member::campaign() const {
  const json value{{"name", settings_.name}, {"uri", settings_.uri}, {"process", settings_.process}};
  return {{{std::string(leader_key), Guard::Field::created, 0},
           {std::string(ahead_key), Guard::Field::created, 0}},
          {Put{std::string(leader_key), value.dump(), lease_->id},
           Delete{std::string(successor_key), std::string(successor_key) + '\0'}},
          {}};
}

// Deletes this key, and no other that has come in its place.
Transaction Member::evict(const KeyValue& leader) {
  return {{{leader.key, Guard::Field::created, leader.created},
           {leader.key, Guard::Field::modified, leader.modified}},
          {Delete{leader.key, leader.key + '\0'}},
          {}};
}

// Puts `ahead` before the member fails, so that no member with fewer events leads: the changes that only this
// store has were answered.
void Member::report_ahead(const std::vector<KeyValue>& head, const std::vector<KeyValue>& ahead, BootTime now,
                          Effects& effects) {
  if (is_report_refused_ || (ahead_ && ahead_->applied >= applied_)) {
    throw Error(ESTALE,
                fmt::format("the log in etcd ends with event {}, and this store with {}: etcd was restored "
                            "from an older backup; no daemon leads until the cluster begins anew from the "
                            "store with most events (resourced --cluster-init)",
                            head_, applied_));
  }
  const auto revision = [](const std::vector<KeyValue>& found) {
    return found.empty() ? 0 : found[0].modified;
  };
  const json value{{"name", settings_.name}, {"applied", applied_}};
  send(Step::report_ahead,
       Transaction{{{std::string(head_key), Guard::Field::modified, revision(head)},
                    {std::string(ahead_key), Guard::Field::modified, revision(ahead)}},
                   {Put{std::string(ahead_key), value.dump()}},
                   {}},
       now, effects);
}

std::string Member::obstacle() const {
  if (!ahead_) return {};
  return fmt::format(
      "no daemon leads: the store of {} has events up to {}, and the log in etcd, which was restored from an "
      "older backup, up to {}; begin the cluster anew from that store with resourced --cluster-init",
      json_text::printable_line(ahead_->name), ahead_->applied, head_);
}

}  // namespace resourced::cluster
