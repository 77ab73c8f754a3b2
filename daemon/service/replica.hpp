// The state of a cluster on a standby, made from the log (core/module/state.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "core/module/state.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/records.hpp"
#include "proto/message.hpp"
#include "proto/topics/logged_state.hpp"

namespace resourced::daemon::service {

class Replica {
 public:
  /// The state after event `last`.
  Replica(module::State state, log::Sequence last) : state_(std::move(state)), last_(last) {}

  /// Applies the next event, and returns the targets that it concerns. After an event that cannot be read the
  /// state is not known, until a later event comes with all of it.
  text::IdSet take(const log::Record& record);

  /// Returns the last event that was taken.
  [[nodiscard]] log::Sequence last() const noexcept { return last_; }
  /// Returns the inventory, or an empty one while it is not known.
  [[nodiscard]] const rset::ResourceSet& inventory() const noexcept { return state_.inventory; }
  [[nodiscard]] const text::IdSet& excluded() const noexcept { return state_.exclude; }
  /// Returns a number that grows with each change of inventory() or excluded().
  [[nodiscard]] std::uint64_t inventory_version() const noexcept { return inventory_version_; }
  /// Throws Error EAGAIN while the state is not known, or has no inventory.
  void require_state() const;
  /// Returns the answer to a read, encoded once for all requests until the next event that may change it.
  /// Throws as require_state() does.
  [[nodiscard]] proto::Payload read(proto::topics::LogRead what);

 private:
  module::State state_;
  bool is_known_ = true;
  log::Sequence last_;
  std::uint64_t inventory_version_ = 1;
  /// Answers by LogRead; null if an event may have changed it.
  std::array<proto::Payload, proto::topics::log_reads> answers_;
};

}  // namespace resourced::daemon::service
