// The ledger of allocations: resource.alloc, resource.free, resource.force-free,
// resource.alloc-update and resource.allocations.
// A scheduler may change allocations of the targets that its own connection has acquired.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/service/answers.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/requests.hpp"

namespace resourced::daemon::service {

class AllocationTopics {
 public:
  /// Limits of a response to resource.allocations, which a client requests in parts: allocations and bytes in
  /// it, and allocations that are looked at for it.
  static constexpr std::size_t most_listed = 500;
  static constexpr std::size_t most_listed_bytes = std::size_t{256} << 10;
  static constexpr std::size_t most_looked_at = 1000;

  AllocationTopics(Executor& executor, const Committed& committed, const Answers& answers, Requests& requests)
      : executor_(executor), committed_(committed), answers_(answers), requests_(requests) {}

  void alloc(const Call& call);
  /// Changes allocations of the targets that the sender has acquired. What another connection has resumed is
  /// refused with the Error that ended the sender's stream.
  void change(const Call& call);
  /// Frees any allocation for an operator; for a key that is bound to hosts, only those on these hosts.
  void force_free(const Call& call);
  /// Changes an allocation for the scheduler of its partition, or for an operator.
  void update(const Call& call);
  void list(const Call& call);

 private:
  void change_for_scheduler(const Call& call, module::LedgerCommand command);
  /// Returns the holders of a client's acquires.
  [[nodiscard]] std::vector<engine::HolderId> holders_of(proto::ClientId client) const;
  /// Returns whether a client has an acquire with the extension `ledger`.
  [[nodiscard]] bool has_ledger(proto::ClientId client) const;
  /// Answers an alloc, free or alloc-update, with the number of its event for a client that has_ledger().
  void respond(const Call& call);

  Executor& executor_;
  const Committed& committed_;
  const Answers& answers_;
  Requests& requests_;
};

}  // namespace resourced::daemon::service
