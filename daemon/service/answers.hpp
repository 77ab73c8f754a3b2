// Answers about the present state, encoded once and shared by all requests until the state changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/module/acquisition.hpp"
#include "core/module/module.hpp"
#include "core/nodes/health.hpp"
#include "daemon/service/feasibility_checks.hpp"
#include "daemon/service/replica.hpp"
#include "proto/message.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::daemon::service {

class Answers {
 public:
  /// `term` is that of the leader of a cluster. The answers are those of the `replica`, if there is one.
  Answers(const module::Module& module, const module::Acquisition& acquisition, const nodes::Health& health,
          std::optional<proto::topics::Term> term, Replica* replica)
      : module_(module),
        acquisition_(acquisition),
        health_(health),
        term_(std::move(term)),
        replica_(replica) {}

  // Of a standby each of these throws as Replica::read() does.

  [[nodiscard]] proto::Payload status();
  [[nodiscard]] proto::Payload inventory();
  /// Throws Error EAGAIN while the inventory is not known, and as proto::encode_hostlist() does.
  [[nodiscard]] proto::Payload hostlist();
  /// The inventory for feasibility checks, which run on another thread. Throws Error EAGAIN likewise.
  [[nodiscard]] std::shared_ptr<FeasibilityInventory> acquirable();
  /// The first response to an acquire of these targets. `kept` are those that no other holder keeps,
  /// `allocations` as encode_acquired() takes them.
  [[nodiscard]] proto::Payload acquired(const text::IdSet& targets, const text::IdSet& kept,
                                        const std::optional<std::string>& allocations);

 private:
  struct Cached {
    std::uint64_t version = 0;
    proto::Payload payload;
  };
  /// The encoded R of a set of targets, kept since the same targets are acquired again and again.
  struct Resources {
    std::uint64_t version = 0;
    text::IdSet targets;
    std::string text;
  };

  /// Grows with each change of a state or of the ledger.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return module_.state_version() + module_.ledger().version();
  }
  void require_inventory() const;
  template <class Encode>
  const proto::Payload& cached(Cached& cache, std::uint64_t version, Encode encode);

  const module::Module& module_;
  const module::Acquisition& acquisition_;
  const nodes::Health& health_;
  std::optional<proto::topics::Term> term_;
  Replica* replica_;
  Cached status_;
  std::uint64_t health_version_ = 0;
  Cached inventory_;
  Cached hostlist_;
  std::map<std::string, Resources> resources_;
  std::shared_ptr<FeasibilityInventory> acquirable_;
  std::uint64_t acquirable_version_ = 0;
};

}  // namespace resourced::daemon::service
