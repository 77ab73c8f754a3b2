// How many connections there are, of each peer and in all, held to limits: one count for all endpoints, as
// they share the descriptors of the process. A peer is whatever text the transport knows it by: a uid, an
// address. No sockets in here.
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
    /// Of all peers but the owner's; 0: no limit.
    std::size_t of_others = 0;
    /// The peers for whom there is always room: what others take up does not count for them.
    std::unordered_set<std::string> owners = {};
  };
  explicit ConnectionCount(Limits limits) : limits_(std::move(limits)) {}

  /// False, and nothing is counted, if the peer has as many connections as it may have, or all others have.
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

  /// Whether a crowd has left: true once there are only half as many connections, and `crowd` fewer, than
  /// there have been since this was last true.
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
  // Peers without connections are not in here.
  std::unordered_map<std::string, std::size_t> counts_;
};

}  // namespace resourced::daemon::transport
