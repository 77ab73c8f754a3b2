// The page of `resourcectl show` with everything about one node. Pure functions of answers of the daemon.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/views/views.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "proto/topics/allocations.hpp"
#include "proto/topics/peers.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::views {

/// The history of one host, which keeps its last events and the time of the last change of state.
class NodeHistory {
 public:
  /// Number of events that the history keeps.
  static constexpr std::size_t most = 10;

  explicit NodeHistory(std::string host) : host_(std::move(host)) {}

  /// Adds the next event that concerns the host. Ignores other values.
  void add(const nlohmann::json& event);

  [[nodiscard]] const std::deque<nlohmann::json>& last() const noexcept { return last_; }
  /// Returns the time since which the host is in this state of targets_by_state(), or shrunk, according to
  /// the events; nothing if the events do not determine it.
  [[nodiscard]] std::optional<WallTime> since(std::string_view state) const;

 private:
  void set(std::optional<bool>& flag, bool value, WallTime when);
  [[nodiscard]] bool was_online(const nlohmann::json& context) const;
  [[nodiscard]] std::string_view state() const;

  std::string host_;
  std::deque<nlohmann::json> last_;
  /// Unset until the first event that determines it.
  std::optional<bool> online_;
  std::optional<bool> torpid_;
  std::optional<bool> drained_;
  std::string_view state_;
  WallTime since_{};
};

/// The facts of a node. Those that the daemon does not report are empty.
struct NodeFacts {
  const proto::topics::Status& status;
  text::IdSet::Id rank = 0;
  std::optional<proto::topics::Peers> peers;
  /// Allocations on this node; unset if the daemon has no ledger.
  std::optional<std::vector<proto::topics::ListedAllocation>> allocations;
  /// Memory in bytes.
  std::optional<double> memory;
  /// Whether the daemon accepts node agents.
  bool takes_agents = false;
  const NodeHistory& history;
};

/// Returns the memory of each rank in bytes, from the graph in the key `scheduling` of an R (RFC 20, JGF),
/// for ranks that have vertices `memory` there.
[[nodiscard]] std::map<text::IdSet::Id, double> memory_of_graph(const nlohmann::json& r);

[[nodiscard]] nlohmann::ordered_json node_json(const NodeFacts& facts);
/// Returns the lines of the page, each with its line end. Ages are those at `now`.
[[nodiscard]] std::string node_page(const NodeFacts& facts, WallTime now, const UserName& user_name);

/// Do the same for a host that left the inventory for good (`shrunk` of the status). JSON has the keys of
/// node_json() that apply, with null for the rank, and `returning`; the drains are those that wait for its
/// return.
[[nodiscard]] nlohmann::ordered_json left_node_json(const std::string& host,
                                                    const proto::topics::Status& status,
                                                    const NodeHistory& history);
[[nodiscard]] std::string left_node_page(const std::string& host, const proto::topics::Status& status,
                                         const NodeHistory& history, WallTime now, const UserName& user_name);

}  // namespace resourced::cli::views
