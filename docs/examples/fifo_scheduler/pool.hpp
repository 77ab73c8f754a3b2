// The resources that the scheduler has acquired, the targets that are up, and the jobs that hold cores and
// gpus. Pure state: events and the time are arguments.
//
// A job holds cores of hosts instead of ranks, because a restarted daemon may renumber the hosts. It holds
// them until release(), even if the host fails.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/acquisition.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "docs/examples/fifo_scheduler/request.hpp"

namespace resourced::fifo {

class Pool {
 public:
  using JobId = std::uint64_t;

  /// Takes the first response, also after a reconnection: replaces the inventory and the up set.
  void acquire(const rset::ResourceSet& inventory, const text::IdSet& up);

  // The functions below take later changes from the daemon, as client::AcquisitionObserver passes them on.
  void set_up(const text::IdSet& ranks) { up_ |= ranks; }
  void set_down(const text::IdSet& ranks) { up_ -= ranks; }
  void shrink(const text::IdSet& ranks);
  void add_property(std::string_view name, const text::IdSet& ranks) { inventory_.add_property(name, ranks); }
  void remove_property(std::string_view name, const text::IdSet& ranks) {
    inventory_.remove_property(name, ranks);
  }
  void set_expiration(WallTime time) { inventory_.set_expiration(time); }
  void set_scheduled(const std::vector<client::ScheduledDrain>& drains) { scheduled_ = drains; }

  /// Returns why the inventory could not satisfy the request with everything up and free; empty if it could.
  [[nodiscard]] std::string denial(const Request& request) const;
  /// Whether the resources have expired, which ends allocation.
  [[nodiscard]] bool expired(WallTime now) const;

  /// Returns the targets whose drain begins before this time.
  [[nodiscard]] text::IdSet drained_before(WallTime end) const;

  /// Allocates targets that are up, free, and match the constraint, lowest ranks first, and returns the
  /// allocation as an R; nullopt if the request has to wait. A request for whole nodes gets nodes of which
  /// nothing is held. No target is allocated whose drain begins before the job ends; a request without
  /// duration ends with the resources. Requires a new id and a request that is not denied. Throws Error, with
  /// nothing allocated, if adding the duration does not change `now`, or if a target would give gpus alone.
  [[nodiscard]] std::optional<rset::ResourceSet> allocate(JobId id, const Request& request, WallTime now);

  /// Whether a request has to wait, and would be allocated if no drain were scheduled.
  [[nodiscard]] bool waits_for_drain(const Request& request, WallTime now) const;

  /// Holds the resources of an earlier allocation, whose targets may be gone by now. Has no effect for an id
  /// that holds resources already.
  void recover(JobId id, const rset::ResourceSet& allocation);

  [[nodiscard]] bool holds(JobId id) const { return held_.contains(id); }
  /// Returns the ids of all jobs that hold resources.
  [[nodiscard]] std::vector<JobId> jobs() const;
  /// Releases a job. Returns false if the id holds nothing.
  bool release(JobId id);
  /// Releases the resources that a job has of these targets. A job that has no others is released.
  void release(JobId id, const text::IdSet& ranks);

 private:
  using Rank = text::IdSet::Id;
  /// A host, and the ordinal among the ranks on it.
  using Target = std::pair<std::string, unsigned>;

  struct Resources {
    text::IdSet cores;
    text::IdSet gpus;
  };
  struct Node {
    Rank rank;
    Resources has;
  };

  /// Returns the nodes in the order of ranks.
  [[nodiscard]] std::vector<Node> all_nodes(const text::IdSet& ranks) const;
  /// Returns the nodes that are up and have something free, without those that are `avoided`.
  [[nodiscard]] std::vector<Node> free_nodes(const Request& request, const text::IdSet& avoided) const;
  /// Returns the end of a job that begins now; the latest time if it has none.
  [[nodiscard]] WallTime end_of(const Request& request, WallTime now) const;
  void hold(JobId id, const Target& target, const Resources& part);
  void give_back(const Target& target, const Resources& part);

  rset::ResourceSet inventory_;
  text::IdSet up_;
  std::vector<client::ScheduledDrain> scheduled_;
  std::map<Rank, Target> targets_;
  /// The held resources by target, without empty entries, and by job.
  std::map<Target, Resources> taken_;
  std::map<JobId, std::vector<std::pair<Target, Resources>>> held_;
};

}  // namespace resourced::fifo
