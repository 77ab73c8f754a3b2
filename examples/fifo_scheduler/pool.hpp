// The view of a scheduler: the resources that it has acquired, the targets that are up, and the jobs that
// hold cores and gpus. Pure state: it is told what happened, and the time, and says what follows.
//
// What is held belongs to hosts, not to ranks, which a daemon that comes back may have numbered anew: it
// stays held until it is released, whatever becomes of its host meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "examples/fifo_scheduler/request.hpp"

namespace resourced::fifo {

class Pool {
 public:
  using JobId = std::uint64_t;

  /// The first picture, or the one after a reconnection: it takes the place of inventory and up set.
  void acquire(const rset::ResourceSet& inventory, const text::IdSet& up);

  // Later changes from the daemon, as client::AcquisitionObserver passes them on.
  void set_up(const text::IdSet& ranks) { up_ |= ranks; }
  void set_down(const text::IdSet& ranks) { up_ -= ranks; }
  void shrink(const text::IdSet& ranks);
  void add_property(std::string_view name, const text::IdSet& ranks) { inventory_.add_property(name, ranks); }
  void remove_property(std::string_view name, const text::IdSet& ranks) {
    inventory_.remove_property(name, ranks);
  }
  void set_expiration(WallTime time) { inventory_.set_expiration(time); }

  /// Why the request could never be served, were everything up and free; empty if it could.
  [[nodiscard]] std::string denial(const Request& request) const;
  /// Whether the resources have expired: nothing is allocated any more.
  [[nodiscard]] bool expired(WallTime now) const;

  /// Takes what the request needs from what is up, free, and matches its constraint, lowest ranks first, and
  /// gives the allocation as an R. Nothing if it has to wait. A request for whole nodes is served by nodes of
  /// which nothing is held. Requires a new id and a request that is not denied. Throws Error, with nothing
  /// taken, for a duration that is too short to be told from `now`.
  [[nodiscard]] std::optional<rset::ResourceSet> allocate(JobId id, const Request& request, WallTime now);

  /// False if nothing is held under this id.
  bool release(JobId id);

 private:
  using Rank = text::IdSet::Id;
  /// A host, and which of the ranks on it.
  using Target = std::pair<std::string, unsigned>;

  struct Resources {
    text::IdSet cores;
    text::IdSet gpus;
  };
  struct Node {
    Rank rank;
    Resources has;
  };

  /// In the order of ranks.
  [[nodiscard]] std::vector<Node> all_nodes(const text::IdSet& ranks) const;
  [[nodiscard]] std::vector<Node> free_nodes(const Request& request) const;
  void hold(JobId id, const rset::ResourceSet& allocation);

  rset::ResourceSet inventory_;
  text::IdSet up_;
  std::map<Rank, Target> targets_;
  /// The same twice: by target, all that is held there (and no entry where nothing is), and by job.
  std::map<Target, Resources> taken_;
  std::map<JobId, std::vector<std::pair<Target, Resources>>> held_;
};

}  // namespace resourced::fifo
