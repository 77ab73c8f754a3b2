// Answers with the committed state, encoded once and shared by all requests until the state changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/engine.hpp"
#include "core/module/module.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/feasibility_checks.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::daemon::service {

class Answers {
 public:
  Answers(const engine::Engine& engine, const Committed& committed, const ClusterTopics& cluster)
      : engine_(engine), committed_(committed), cluster_(cluster) {}

  /// Forgets the answers, as this daemon has another role from now on.
  void forget() { status_ = inventory_ = {}; }
  /// Throws Error EAGAIN as long as the inventory is not known.
  void require_inventory() const;
  /// Does the same, but throws Error with this errno and text in a Flux instance.
  void require_inventory(int errnum, const char* text) const;
  /// Returns the event of the state for the answers of a standby, which have it.
  [[nodiscard]] std::optional<log::Sequence> sequence() const {
    return cluster_.follows() ? std::optional(committed_.last()) : std::nullopt;
  }

  // Each of the following throws as require_inventory() does.

  [[nodiscard]] proto::Payload status();
  [[nodiscard]] proto::Payload inventory();
  /// Returns the answer to attr.get of `hostlist`. Also throws as proto::encode_hostlist() does.
  [[nodiscard]] proto::Payload hostlist();
  /// Returns the inventory for feasibility checks, which run on another thread.
  [[nodiscard]] std::shared_ptr<FeasibilityInventory> acquirable();
  /// Returns the first response to an acquire of these targets. `kept` are targets that no other holder
  /// keeps. The leader of `options` is filled in.
  [[nodiscard]] proto::Payload acquired(const text::IdSet& targets, const text::IdSet& kept,
                                        proto::topics::AcquiredOptions options);

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

  template <class Encode>
  const proto::Payload& cached(Cached& cache, std::uint64_t version, Encode encode);

  const engine::Engine& engine_;
  const Committed& committed_;
  const ClusterTopics& cluster_;
  Cached status_;
  std::uint64_t reports_version_ = 0;
  Cached inventory_;
  Cached hostlist_;
  std::map<std::string, Resources> resources_;
  std::shared_ptr<FeasibilityInventory> acquirable_;
  std::uint64_t acquirable_version_ = 0;
};

}  // namespace resourced::daemon::service
