// etcd for a simulated cluster, with the log in it. Each commit is checked: only the leader extends the log,
// in the order of epochs and times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/cluster/requests.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"
#include "reference.hpp"
#include "simulated_etcd.hpp"

namespace resourced::sim {

class Etcd {
 public:
  /// An event of the log, with the epoch of the leader that committed it.
  struct Entry {
    daemon::log::Record record;
    nlohmann::json event;
    cluster::Revision epoch = 0;
  };

  /// Carries out a request. Throws Violation for a commit that breaks a rule.
  cluster::Outcome carry_out(const cluster::Request& request, SteadyTime now);

  /// The log, with event n at n - 1; it keeps the events that are removed from etcd.
  [[nodiscard]] const std::vector<Entry>& log() const noexcept { return log_; }
  [[nodiscard]] std::uint64_t last() const noexcept { return log_.size(); }
  /// The event of a drain with this reason, or of an allocation with this id; 0 if there is none.
  [[nodiscard]] std::uint64_t find(const std::string& mark) const;

  /// Whether the event belongs to a start and is not its last event: until that one, the log lacks the
  /// exclusions.
  [[nodiscard]] bool is_within_start(std::uint64_t sequence) const;

  /// Expects the daemon that leads in this epoch to start with this configuration.
  void expect_start(cluster::Revision epoch, Configuration configuration) {
    starts_[epoch] = std::move(configuration);
  }
  /// The state after an event, by the second implementation.
  const Reference& state_after(std::uint64_t sequence);

 private:
  void take_commit(std::uint64_t last);
  /// Checks the holders in a commit that evicts one of them.
  void check_evicted() const;

  cluster::test::SimulatedEtcd etcd_;
  cluster::Revision head_revision_ = 0;
  std::vector<Entry> log_;
  std::map<std::string, std::uint64_t> marks_;
  std::map<cluster::Revision, Configuration> starts_;
  /// The states after no event, after the first event, and so on, as far as they were needed.
  std::vector<Reference> states_{Reference()};
};

}  // namespace resourced::sim
