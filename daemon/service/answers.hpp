// Answers with the present state, encoded once and shared by all requests until the state changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/engine/engine.hpp"
#include "core/module/module.hpp"
#include "daemon/service/feasibility_checks.hpp"
#include "daemon/service/replica.hpp"
#include "proto/message.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::daemon::service {

class Answers {
 public:
  /// `term` is that of the leader of a cluster. If there is a `replica`, the answers show its state.
  Answers(const engine::Engine& engine, std::optional<proto::topics::Term> term, Replica* replica)
      : engine_(engine), term_(std::move(term)), replica_(replica) {}

  // Each of the following throws Error EAGAIN without an inventory, on a standby as Replica::read() does.

  [[nodiscard]] proto::Payload status();
  [[nodiscard]] proto::Payload inventory();
  /// Returns the answer to attr.get of `hostlist`. Also throws as proto::encode_hostlist() does.
  [[nodiscard]] proto::Payload hostlist();
  /// Returns the inventory for feasibility checks, which run on another thread.
  [[nodiscard]] std::shared_ptr<FeasibilityInventory> acquirable();
  /// Returns the first response to an acquire of these targets. `kept` are targets that no other holder
  /// keeps, `allocations` is a list as encode_acquired() takes it.
  [[nodiscard]] proto::Payload acquired(const text::IdSet& targets, const text::IdSet& kept,
                                        const std::optional<std::string>& allocations);

 private:
  struct Cached {
    std::uint64_t version = 0;
    proto::Payload payload;
  };
  /// The encoded R of a set of targets, kept as the same targets are acquired again and again.
  struct Resources {
    std::uint64_t version = 0;
    text::IdSet targets;
    std::string text;
  };

  /// Returns a number that grows with each change of a state or of the ledger.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return module_.state_version() + module_.ledger().version();
  }
  void require_inventory() const;
  template <class Encode>
  const proto::Payload& cached(Cached& cache, std::uint64_t version, Encode encode);

  const engine::Engine& engine_;
  const module::Module& module_ = engine_.module();
  std::optional<proto::topics::Term> term_;
  Replica* replica_;
  Cached status_;
  std::uint64_t reports_version_ = 0;
  Cached inventory_;
  Cached hostlist_;
  std::map<std::string, Resources> resources_;
  std::shared_ptr<FeasibilityInventory> acquirable_;
  std::uint64_t acquirable_version_ = 0;
};

}  // namespace resourced::daemon::service
