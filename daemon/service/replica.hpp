// The state of a cluster as the log tells it to a standby (core/module/snapshot.hpp).
#pragma once

#include <optional>

#include "core/module/snapshot.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/store/records.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::service {

class Replica {
 public:
  /// The states after event `last`; nothing for an empty log, or one that does not tell them.
  Replica(std::optional<module::Snapshot> states, store::Sequence last);

  /// Takes the next event, and returns the targets that it concerns. After an event that cannot be read the
  /// states are not known, until a later one comes with all of them.
  text::IdSet take(const store::Record& record);

  /// The last event that was taken.
  [[nodiscard]] store::Sequence last() const noexcept { return last_; }
  /// Empty while it is not known.
  [[nodiscard]] const rset::ResourceSet& inventory() const noexcept { return states_.inventory; }
  /// The answer to resource.status, encoded once for all requests until the next event. Throws Error EAGAIN
  /// while the states are not known.
  [[nodiscard]] proto::Payload status();

 private:
  module::Snapshot states_;
  bool is_known_;
  store::Sequence last_;
  /// Null if there was an event since.
  proto::Payload status_;
};

}  // namespace resourced::daemon::service
