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
    /// 0: no limit.
    std::size_t per_peer = 0;
    /// Of all peers but the owners; 0: no limit.
    std::size_t of_others = 0;
    /// Peers to which `of_others` does not apply, so that others cannot take their room.
    std::unordered_set<std::string> owners = {};
  };
  explicit ConnectionCount(Limits limits) : limits_(std::move(limits)) {}

  /// False, and nothing is counted, if the peer or all others together have reached their limit.
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

  /// The end of a connection that add() has counted. Of a peer that has none it changes nothing.
  void remove(const std::string& peer) {
    const auto found = counts_.find(peer);
    if (found == counts_.end()) return;
    if (!limits_.owners.contains(peer)) --others_;
    --all_;
    if (--found->second == 0) counts_.erase(found);
  }

  /// True if the number of connections has fallen by at least `crowd`, and to at most a half, from its
  /// maximum since this was last true.
  [[nodiscard]] bool has_emptied(std::size_t crowd) {
    if (most_at_once_ - all_ < std::max(crowd, all_)) return false;
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
  // Only peers with connections.
  std::unordered_map<std::string, std::size_t> counts_;
};

}  // namespace resourced::daemon::transport
