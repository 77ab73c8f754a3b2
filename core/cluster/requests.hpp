// Requests to etcd and their outcomes, as far as a cluster of daemons uses it. Keys are relative to the
// prefix of the cluster; only the client of etcd (daemon/log/etcd) knows the prefix and the encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/time.hpp"

namespace resourced::cluster {

/// Counts the changes of etcd. Never 0 for a key that is there.
using Revision = std::int64_t;
using LeaseId = std::int64_t;

struct KeyValue {
  std::string key;
  std::string value;
  Revision created = 0;
  Revision modified = 0;
  /// The key is deleted when this lease ends; 0 for none.
  LeaseId lease = 0;
};

/// A condition of a transaction: the key was created, or last modified, by this revision. A key that is not
/// there has the revision 0.
struct Guard {
  enum class Field : std::uint8_t { created, modified };
  std::string key;
  Field field = Field::created;
  Revision revision = 0;
};

struct Put {
  std::string key;
  std::string value;
  /// The key is deleted when this lease ends; 0 for none. A lease that has ended refuses the transaction.
  LeaseId lease = 0;
};
/// Deletes the keys from `key` to before `end`.
struct Delete {
  std::string key;
  std::string end;
};
/// Reads one key, or with an `end` the keys from `key` to before it, in order, at most `limit`.
struct Read {
  std::string key;
  std::string end = {};
  std::size_t limit = 0;
};
using Operation = std::variant<Put, Delete, Read>;

/// If all guards hold, carries out `then`, else `otherwise`. Other transactions come before or after it.
struct Transaction {
  std::vector<Guard> guards = {};
  std::vector<Operation> then;
  std::vector<Operation> otherwise = {};
};
/// A new lease.
struct Grant {
  Seconds ttl{};
};
struct KeepAlive {
  LeaseId lease = 0;
};
/// Asks whether there is a lease, and does not prolong it.
struct FindLease {
  LeaseId lease = 0;
};
/// Ends a lease and deletes its keys.
struct Revoke {
  LeaseId lease = 0;
};
/// Forgets what keys were before this revision.
struct Compact {
  Revision revision = 0;
};
/// Tells changes of the keys from `key` to before `end`, from this revision on. It has several outcomes: the
/// first Changed when it is in place, one for each change, where several that come together have one, and at
/// last Unknown or Refused. The next Watch ends it without one.
struct Watch {
  std::string key;
  std::string end;
  Revision from = 0;
};
using Request = std::variant<Transaction, Grant, KeepAlive, FindLease, Revoke, Compact, Watch>;

struct TransactionDone {
  /// Whether `then` was carried out.
  bool held = false;
  /// Of etcd, after the transaction.
  Revision revision = 0;
  /// What each Read of the branch found, in order.
  std::vector<std::vector<KeyValue>> found = {};
};
struct LeaseDone {
  LeaseId lease = 0;
  /// 0 if the lease has ended.
  Seconds ttl{};
};
/// A Revoke or a Compact was carried out.
struct Done {};
/// Keys of a Watch have changed, at last by this revision. Before Watch::from: none has yet.
struct Changed {
  Revision revision = 0;
};
/// etcd has refused the request, and nothing has changed. A Watch is also refused if etcd has forgotten
/// changes from its first revision on.
struct Refused {
  std::string why;
  /// As the lease has ended.
  bool lease_has_ended = false;
};
/// There was no answer: the request may have been carried out, and may still be carried out later. A Watch
/// has ended.
struct Unknown {
  std::string why;
};
using Outcome = std::variant<TransactionDone, LeaseDone, Done, Changed, Refused, Unknown>;

}  // namespace resourced::cluster
