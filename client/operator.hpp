// The requests of operators: drain, undrain, properties and evict, the status of targets and the list of
// schedulers, and waits until targets are idle or ready.
//
// Threads: an operator sends its requests in the thread of its connection. read_status() and read_peers() are
// for any thread, and so are the types of requests and answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/connection.hpp"
#include "client/target_wait.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"

#pragma GCC visibility push(default)
namespace resourced::client {

struct DrainRequest {
  /// The effect of the drain on targets that are drained with a reason already.
  enum class Mode {
    refuse,           ///< they refuse the request (EEXIST)
    update,           ///< they are skipped
    overwrite,        ///< they get the new reason
    force_overwrite,  ///< they get the new reason and time
  };
  /// Ranks as an idset (RFC 22), or hosts as a hostlist (RFC 29).
  std::string targets;
  std::optional<std::string> reason = std::nullopt;
  Mode mode = Mode::refuse;
  /// When the drain begins and ends by itself.
  std::optional<WallTime> from = std::nullopt;
  std::optional<WallTime> until = std::nullopt;
  /// The site's ticket for this work, one line of at most 256 bytes.
  std::optional<std::string> ticket = std::nullopt;
};

/// The drain of some targets, present or scheduled.
struct Drain {
  text::IdSet ranks;
  /// When the targets were drained; for a scheduled drain, when it begins.
  WallTime since{};
  /// Empty if there is none.
  std::string reason = {};
  std::optional<WallTime> until = std::nullopt;
  std::optional<std::string> ticket = std::nullopt;
  /// The user, key or host that drained the targets, such as `uid 1000`; empty if it is not known.
  std::string by = {};
};

struct Status {
  rset::ResourceSet resources;
  std::vector<Drain> drains = {};
  std::vector<Drain> scheduled = {};
  text::IdSet online = {};
  text::IdSet excluded = {};
  text::IdSet torpid = {};
  /// Targets with an allocation.
  text::IdSet allocated = {};

  [[nodiscard]] text::IdSet drained() const;
};

/// A scheduler that has resources, or waits for them.
struct Peer {
  /// Empty for the targets in no partition.
  std::string partition = {};
  WallTime since{};
  /// As Drain::by.
  std::string by = {};
  /// The targets that it has; empty for one that waits.
  text::IdSet targets = {};
  /// Whether the scheduler records its allocations in the ledger.
  bool allocations = false;
  /// The time until which the targets are kept for the scheduler, if its connection is lost.
  std::optional<WallTime> kept_until = std::nullopt;
};

struct Peers {
  std::vector<Peer> holders = {};
  /// The schedulers that wait for resources, the next one first.
  std::vector<Peer> waiting = {};
  /// The targets whose node agents are connected.
  text::IdSet agents = {};
};

/// Sends the requests of an operator over a connection. Each is answered by one response, with which the
/// handler is called, but never from inside these functions. A change was made when its response is ok(). The
/// daemon's errors: EPERM without the right, EINVAL for targets that the inventory lacks, EEXIST for targets
/// that are drained already, or not drained.
class Operator {
 public:
  using Handler = Connection::Handler;
  using RequestId = Connection::RequestId;

  /// `connection` must outlive the operator. `options` are those of each request.
  explicit Operator(Connection& connection, SendOptions options = {})
      : connection_(connection), options_(options) {}

  RequestId drain(const DrainRequest& wanted, Handler handler);
  /// Ends drains, and cancels those that are scheduled for the targets. `only_drained` skips targets that are
  /// not drained instead of refusing them.
  RequestId undrain(std::string_view targets, Handler handler, bool only_drained = false);
  RequestId add_property(std::string_view name, std::string_view targets, Handler handler);
  RequestId remove_property(std::string_view name, std::string_view targets, Handler handler);
  /// Ends the hold of a scheduler, which is told the reason. `holder` is one of Peers::holders. ESTALE:
  /// another scheduler has the resources by now, or the same one has acquired them again; ENOENT: none has
  /// them.
  RequestId evict(const Peer& holder, std::string_view reason, Handler handler);

  /// Waits until targets are idle or ready, also over restarts of the daemon, for as long as the returned
  /// object lives. It may outlive the operator. The options of the operator do not apply: a wait may take any
  /// time.
  [[nodiscard]] TargetWait wait(const TargetWaitOptions& wanted, TargetWait::Done done);

  RequestId status(Handler handler);
  RequestId peers(Handler handler);
  /// Read the response to status() and to peers(). They throw the failure if there is one, and an Error for
  /// an answer that is malformed.
  [[nodiscard]] static Status read_status(const Response& response);
  [[nodiscard]] static Peers read_peers(const Response& response);

 private:
  Connection& connection_;
  SendOptions options_;
};

}  // namespace resourced::client
#pragma GCC visibility pop
