// The daemon's ledger of allocations, for schedulers: what a scheduler has recorded there survives the
// scheduler. Its next start, or its replacement, gets the allocations with its resources
// (AcquisitionOptions::allocations), and no core or gpu can be allocated twice.
//
// The daemon takes these requests from the connection that has acquired the targets. A change that was
// answered is on disk. If the connection was lost before the answer, the change may have been made or not:
// the allocations after the next acquire show it, or the same change is sent again with LedgerChange::repeat.
// The functions here never send a change twice; client/ledger.hpp sends one again whose answer was lost.
//
// Threads: the functions are for the thread of the connection. The types are values, for any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/connection.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

#pragma GCC visibility push(default)
namespace resourced::client {

struct Allocation {
  /// The id: 1 to 64 printable characters, unique among the present allocations of a partition.
  std::string id;
  /// The targets by rank and host, with the cores and gpus that are allocated of each (RFC 20). The daemon
  /// keeps other keys, such as `scheduling`, as they are.
  rset::ResourceSet resources;
  /// The time by which the allocation should be freed: afterwards the daemon reports it as expired, and frees
  /// it if its setting `free-expired` says so.
  std::optional<WallTime> expiration = std::nullopt;
  /// A note for people, at most 1024 bytes.
  std::optional<std::string> note = std::nullopt;

  // The following members are set in an allocation that the daemon lists, and not sent.

  /// The partition in which the allocation was made; empty outside of all partitions. Allocations of other
  /// partitions on the targets of a scheduler may have the same ids as its own.
  std::string partition = {};
  /// Hosts (RFC 29) of allocated targets that are not in the inventory now, and not in `resources`.
  std::string absent = {};
  bool expired = false;
};

/// An allocation that is to be freed, or was freed by somebody else, or a part of one.
struct Freed {
  std::string id;
  /// The partition in which it was made (Allocation::partition). Without it, a connection with one
  /// acquisition means its own partition, and one with several gets EINVAL.
  std::optional<std::string> partition = std::nullopt;
  /// Only these targets are freed. An allocation that has none left ends. For an allocation of another
  /// partition these are targets that the connection has acquired.
  std::optional<text::IdSet> ranks = std::nullopt;
};

/// A change of the ledger in one step: frees, then allocations.
struct LedgerChange {
  std::vector<Freed> frees = {};
  std::vector<Allocation> allocations = {};
  /// The change may have been sent before: an allocation that exists as it is here counts as made, and an id
  /// or rank that is gone as freed. Use no id again as long as a request that names it is unanswered.
  bool repeat = false;
};

// The handler of each call gets one response: without a payload, or the error of a refusal, which has changed
// nothing. The daemon's errors: EEXIST for an id that is in use (alloc), EBUSY for a core or gpu that is
// allocated, EHOSTDOWN for a target that is drained or excluded, ESTALE for a property that a target has no
// more, EINVAL for resources that are not in the inventory or a host that is not its rank's, EPERM for
// targets that this connection has not acquired, ENOENT for an unknown id (free), EMSGSIZE for a request that
// is too large, EDQUOT for a ledger that is full, EAGAIN if the daemon cannot make the change now. After an
// error of this side (Response::local) it is unknown whether the change was made.

/// Makes all of a change or nothing (resource.alloc, or resource.free if it only frees).
Connection::RequestId change(Connection& connection, const LedgerChange& wanted, Connection::Handler handler,
                             SendOptions options = {});

/// A change of an allocation. Members that are unset leave it as it is.
struct AllocationUpdate {
  std::string id;
  /// Same as Freed::partition.
  std::optional<std::string> partition = std::nullopt;
  /// The new expiration; the epoch removes it.
  std::optional<WallTime> expiration = std::nullopt;
  /// The new note; an empty one removes it.
  std::optional<std::string> note = std::nullopt;
  /// Resources that the allocation gets in addition, as of a new one, and without `scheduling`.
  std::optional<rset::ResourceSet> add = std::nullopt;
  /// The change may have been sent before: resources that are there already count as added.
  bool repeat = false;
};
/// Changes an allocation (resource.alloc-update).
Connection::RequestId update(Connection& connection, const AllocationUpdate& wanted,
                             Connection::Handler handler, SendOptions options = {});

/// Allocates all of these or none (resource.alloc). The handler is not called from inside this function.
Connection::RequestId alloc(Connection& connection, const std::vector<Allocation>& allocations,
                            Connection::Handler handler, SendOptions options = {});

/// Frees all of these or none (resource.free). `partition` is that of all of them (Freed::partition).
Connection::RequestId free(Connection& connection, const std::vector<std::string>& ids,
                           Connection::Handler handler, SendOptions options = {},
                           const std::optional<std::string>& partition = std::nullopt);
/// Frees a part of an allocation: all resources of these targets (Freed::ranks).
Connection::RequestId free_part(Connection& connection, std::string id, const text::IdSet& ranks,
                                Connection::Handler handler, SendOptions options = {},
                                std::optional<std::string> partition = std::nullopt);

}  // namespace resourced::client
#pragma GCC visibility pop
