// Counts the connections of each peer and of all, and enforces limits. All endpoints share one count, as they
// share the file descriptors of the process. A peer is named as its transport identifies it: by uid or
// address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace resourced::daemon::transport {

class ConnectionCount {
 public:
  struct Limits {
    /// Maximum number of connections of one peer; 0: no limit.
    std::size_t per_peer = 0;
    /// Maximum number of connections of all peers but the owners together; 0: no limit.
    std::size_t of_others = 0;
    /// Peers to which `of_others` does not apply, so that others cannot take their room.
    std::unordered_set<std::string> owners = {};
  };
  explicit ConnectionCount(Limits limits) : limits_(std::move(limits)) {}

  /// Counts a connection. Returns false, and counts nothing, if the limit of the peer or of all is reached.
  [[nodiscard]] bool add(const std::string& peer) {
    const bool is_owner = limits_.owners.contains(peer);
    if (!is_owner && limits_.of_others != 0 && others_ >= limits_.of_others) return false;
    std::size_t& count = counts_[peer];
    if (limits_.per_peer != 0 && count >= limits_.per_peer) return false;
    ++count;
    if (!is_owner) ++others_;
    most_at_once_ = std::max(most_at_once_, ++all_);
    return true;
  }

  /// Counts the end of a connection that add() has counted. Ignores a peer without connections.
  void remove(const std::string& peer) {
    const auto found = counts_.find(peer);
    if (found == counts_.end()) return;
    if (!limits_.owners.contains(peer)) --others_;
    --all_;
    if (--found->second == 0) counts_.erase(found);
  }

  /// Tells a caller that asks regularly whether a crowd has left: true if the number of connections has
  /// fallen by at least `crowd`, and to at most a half, from its maximum since this was last true. Then true
  /// once more, and as long as the number goes on falling: a call may come while a crowd is leaving, and the
  /// memory of a connection is freed after it has been counted out.
  [[nodiscard]] bool has_emptied(std::size_t crowd) {
    const std::size_t fallen = most_at_once_ - all_;
    const bool emptied = fallen >= std::max(crowd, all_);
    if (!emptied && !empties_) return false;
    empties_ = emptied || fallen >= std::max<std::size_t>(crowd / 8, 1);
    most_at_once_ = all_;
    return true;
  }

  [[nodiscard]] std::size_t of(const std::string& peer) const {
    const auto found = counts_.find(peer);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  Limits limits_;
  std::size_t others_ = 0;
  std::size_t all_ = 0;
  std::size_t most_at_once_ = 0;
  // The next has_emptied() is true, too.
  bool empties_ = false;
  // Number of connections of each peer that has any.
  std::unordered_map<std::string, std::size_t> counts_;
};

}  // namespace resourced::daemon::transport
