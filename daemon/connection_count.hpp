// How many connections each peer has, held to a limit. A peer is whatever text the transport knows it by: a
// uid, an address. No sockets in here.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

namespace resourced::daemon {

class ConnectionCount {
 public:
  /// 0: no limit.
  explicit ConnectionCount(std::size_t most_per_peer) noexcept : most_(most_per_peer) {}

  /// False, and nothing is counted, if the peer has as many connections as it may have.
  [[nodiscard]] bool add(const std::string& peer) {
    std::size_t& count = counts_[peer];
    if (most_ != 0 && count >= most_) return false;
    ++count;
    return true;
  }

  /// The end of a connection that add() has counted. Of a peer that has none it changes nothing.
  void remove(const std::string& peer) {
    const auto found = counts_.find(peer);
    if (found == counts_.end()) return;
    if (--found->second == 0) counts_.erase(found);
  }

  [[nodiscard]] std::size_t of(const std::string& peer) const {
    const auto found = counts_.find(peer);
    return found == counts_.end() ? 0 : found->second;
  }

  [[nodiscard]] std::size_t most_per_peer() const noexcept { return most_; }

 private:
  std::size_t most_;
  // Peers without connections are not in here.
  std::unordered_map<std::string, std::size_t> counts_;
};

}  // namespace resourced::daemon
