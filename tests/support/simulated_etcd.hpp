// etcd as the protocol of a cluster uses it: keys with revisions, transactions one after the other, leases,
// and the changes that a watch has to tell. The test controls the time. It can be told not to evaluate
// guards, to test the tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/cluster/requests.hpp"
#include "core/time.hpp"

namespace resourced::cluster::test {

class SimulatedEtcd {
 public:
  bool ignores_created = false;
  bool ignores_modified = false;
  /// Refuses new leases, and transactions that put keys, as etcd does when its database is full.
  bool is_full = false;
  /// The key whose put makes a transaction skip its guards.
  std::string unguarded;

  Outcome carry_out(const Request& request, BootTime now) {
    expire(now);
    return std::visit([&](const auto& one) { return take(one, now); }, request);
  }

  /// Puts a key; those of members that run have a lease, which does not end here.
  void put(const std::string& key, const std::string& value, BootTime now) {
    const bool is_leased = key == "leader" || key.starts_with("members/");
    constexpr Seconds long_ttl{1e9};
    if (is_leased && lasting_ == 0) lasting_ = std::get<LeaseDone>(take(Grant{long_ttl}, now)).lease;
    (void)carry_out(Transaction{{}, {Put{key, value, is_leased ? lasting_ : 0}}, {}}, now);
  }

  [[nodiscard]] static bool puts(const Request& request, const std::string& key) {
    const auto* transaction = std::get_if<Transaction>(&request);
    return transaction != nullptr && std::ranges::any_of(transaction->then, [&](const Operation& operation) {
             const auto* put = std::get_if<Put>(&operation);
             return put != nullptr && put->key == key;
           });
  }

  [[nodiscard]] const std::map<std::string, KeyValue>& keys() const noexcept { return keys_; }
  /// The last revision at which a key of the watch was changed or deleted.
  [[nodiscard]] Revision last_change(const Watch& watch) const {
    Revision last = 0;
    for (auto key = changed_.lower_bound(watch.key); key != changed_.end() && key->first < watch.end; ++key)
      last = std::max(last, key->second);
    return last;
  }
  /// Ends the leases that are due.
  void expire(BootTime now) {
    std::vector<LeaseId> ended;
    for (const auto& [id, lease] : leases_) {
      if (lease.end <= now) ended.push_back(id);
    }
    for (const LeaseId id : ended) end(id);
  }
  /// Forgets all leases but not their keys, as a copy of the keys does.
  void forget_leases() { leases_.clear(); }
  [[nodiscard]] Revision revision() const noexcept { return revision_; }
  [[nodiscard]] Revision compacted() const noexcept { return compacted_; }

 private:
  struct Lease {
    Seconds ttl{};
    BootTime end{};
  };

  Outcome take(const Transaction& transaction, BootTime /*now*/) {
    bool held = true;
    for (const Guard& guard : transaction.guards) {
      const bool is_ignored = guard.field == Guard::Field::created ? ignores_created : ignores_modified;
      const auto found = keys_.find(guard.key);
      const KeyValue none;
      const KeyValue& key = found == keys_.end() ? none : found->second;
      const Revision revision = guard.field == Guard::Field::created ? key.created : key.modified;
      if (!is_ignored && revision != guard.revision) held = false;
    }
    if (puts(transaction, unguarded)) held = true;
    const std::vector<Operation>& operations = held ? transaction.then : transaction.otherwise;
    bool changes = false;
    for (const Operation& operation : operations) {
      if (const auto* put = std::get_if<Put>(&operation)) {
        if (is_full) return Refused{"full"};
        if (put->lease != 0 && !leases_.contains(put->lease)) return Refused{"no such lease", true};
        changes = true;
      }
      if (std::holds_alternative<Delete>(operation)) changes = true;
    }
    if (changes) ++revision_;
    TransactionDone done{held, revision_, {}};
    for (const Operation& operation : operations) {
      if (const auto* put = std::get_if<Put>(&operation)) set(*put);
      if (const auto* gone = std::get_if<Delete>(&operation)) remove(*gone);
      if (const auto* read = std::get_if<Read>(&operation)) done.found.push_back(find(*read));
    }
    return done;
  }

  Outcome take(const Grant& grant, BootTime now) {
    if (is_full) return Refused{"full"};
    leases_.emplace(++last_lease_, Lease{grant.ttl, now + grant.ttl});
    return LeaseDone{last_lease_, grant.ttl};
  }

  Outcome take(const KeepAlive& alive, BootTime now) {
    const auto found = leases_.find(alive.lease);
    if (found == leases_.end()) return LeaseDone{alive.lease, Seconds(0)};
    found->second.end = now + found->second.ttl;
    return LeaseDone{alive.lease, found->second.ttl};
  }

  Outcome take(const FindLease& find, BootTime /*now*/) const {
    const auto found = leases_.find(find.lease);
    return LeaseDone{find.lease, found == leases_.end() ? Seconds(0) : found->second.ttl};
  }

  Outcome take(const Revoke& revoke, BootTime /*now*/) {
    end(revoke.lease);
    return Done{};
  }

  Outcome take(const Compact& compact, BootTime /*now*/) {
    compacted_ = std::max(compacted_, compact.revision);
    return Done{};
  }

  // The first outcome of a watch.
  Outcome take(const Watch& watch, BootTime /*now*/) const {
    if (watch.from < compacted_) return Refused{"compacted"};
    return Changed{watch.from - 1};
  }

  void set(const Put& put) {
    KeyValue& key = keys_[put.key];
    if (key.created == 0) key.created = revision_;
    key.key = put.key;
    key.value = put.value;
    key.modified = changed_[put.key] = revision_;
    bound_[put.key] = key.lease = put.lease;
  }

  void remove(const Delete& gone) {
    auto key = keys_.lower_bound(gone.key);
    while (key != keys_.end() && key->first < gone.end) {
      changed_[key->first] = revision_;
      key = keys_.erase(key);
    }
  }

  [[nodiscard]] std::vector<KeyValue> find(const Read& read) const {
    std::vector<KeyValue> found;
    if (read.end.empty()) {
      if (const auto key = keys_.find(read.key); key != keys_.end()) found.push_back(key->second);
      return found;
    }
    for (auto key = keys_.lower_bound(read.key); key != keys_.end() && key->first < read.end; ++key) {
      if (found.size() == read.limit) break;
      found.push_back(key->second);
    }
    return found;
  }

  void end(LeaseId lease) {
    leases_.erase(lease);
    for (auto key = bound_.begin(); key != bound_.end();) {
      if (lease != 0 && key->second == lease) {
        changed_[key->first] = ++revision_;
        keys_.erase(key->first);
        key = bound_.erase(key);
      } else {
        ++key;
      }
    }
  }

  std::map<std::string, KeyValue> keys_;
  /// The last change of each key, including deleted ones.
  std::map<std::string, Revision> changed_;
  Revision compacted_ = 0;
  std::map<std::string, LeaseId> bound_;
  std::map<LeaseId, Lease> leases_;
  Revision revision_ = 1;
  LeaseId last_lease_ = 0;
  LeaseId lasting_ = 0;
};

}  // namespace resourced::cluster::test
