// The daemon's ledger of allocations, for schedulers: what a scheduler has recorded there survives it. Its
// next start, or its replacement, gets the allocations with its resources (AcquisitionOptions::allocations),
// and no core or gpu can be allocated twice.
//
// The daemon takes these requests from the connection that has acquired the targets. A request that is
// answered is on disk. One whose connection was lost before the answer may be done or not: the allocations
// after the next acquire tell.
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
  /// 1 to 64 printable characters, unique among the present allocations.
  std::string id;
  /// The targets by rank and host, with the cores and gpus that are allocated of each (RFC 20). The daemon
  /// keeps other keys, such as `scheduling`, as they are.
  rset::ResourceSet resources;
  /// When it should have been freed: afterwards the daemon reports it as expired, and does not free it.
  std::optional<WallTime> expiration = std::nullopt;
  /// For people, at most 1024 bytes.
  std::optional<std::string> note = std::nullopt;

  // Of an allocation that the daemon lists; not sent.

  /// The partition of the scheduler that made it; empty for the rest of the inventory.
  std::string partition = {};
  /// Hosts (RFC 29) of targets that are not in the inventory now, and not in `resources`.
  std::string absent = {};
  bool expired = false;
};

// The handler of each call gets one response without a payload, or why it was refused, with nothing done. The
// daemon's errors: EEXIST for an id that is taken (alloc), EBUSY for a core or gpu that is held, EHOSTDOWN
// for a target that is drained or excluded, EINVAL for resources that are not in the inventory or a host that
// is not its rank's, EPERM for targets that this connection has not acquired, ENOENT for an unknown id
// (free), EMSGSIZE for a request that is too large. Errors of this side (Response::local) do not tell whether
// it was done.

/// Allocates all of these or none (resource.alloc). The handler is not called from inside this function.
Connection::RequestId alloc(Connection& connection, const std::vector<Allocation>& allocations,
                            Connection::Handler handler, SendOptions options = {});
/// Frees all of these or none (resource.free).
Connection::RequestId free(Connection& connection, std::vector<std::string> ids, Connection::Handler handler,
                           SendOptions options = {});
/// Frees a part of an allocation: all that it has of these targets. With nothing left it ends.
Connection::RequestId free_part(Connection& connection, std::string id, const text::IdSet& ranks,
                                Connection::Handler handler, SendOptions options = {});

}  // namespace resourced::client
#pragma GCC visibility pop
