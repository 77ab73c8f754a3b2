// The state of a cluster as the log tells it to a standby (core/module/snapshot.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/module/snapshot.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/records.hpp"
#include "proto/message.hpp"
#include "proto/topics/logged_state.hpp"

namespace resourced::daemon::service {

class Replica {
 public:
  /// The states after event `last`; nothing for an empty log, or one that does not tell them.
  Replica(std::optional<module::Snapshot> states, log::Sequence last);

  /// Takes the next event, and returns the targets that it concerns. After an event that cannot be read the
  /// states are not known, until a later one comes with all of them.
  text::IdSet take(const log::Record& record);

  /// The last event that was taken.
  [[nodiscard]] log::Sequence last() const noexcept { return last_; }
  /// Empty while it is not known.
  [[nodiscard]] const rset::ResourceSet& inventory() const noexcept { return states_.inventory; }
  [[nodiscard]] const text::IdSet& excluded() const noexcept { return states_.exclude; }
  /// Grows with each change of these two.
  [[nodiscard]] std::uint64_t inventory_version() const noexcept { return inventory_version_; }
  /// Throws Error EAGAIN while the states are not known.
  void require_states() const;
  /// The answer to a read, encoded once for all requests until the next event that may change it. Throws as
  /// require_states().
  [[nodiscard]] proto::Payload read(proto::topics::LogRead what);

 private:
  module::Snapshot states_;
  bool is_known_;
  log::Sequence last_;
  std::uint64_t inventory_version_ = 1;
  /// By LogRead; null if it may have changed.
  std::array<proto::Payload, proto::topics::log_reads> answers_;
};

}  // namespace resourced::daemon::service
