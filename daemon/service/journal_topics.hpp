// The topic resource.journal. Serves its consumers in slices, at a limited pace while other requests are
// served.
#pragma once

#include <cstdint>

#include "core/text/idset.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/program.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/journal.hpp"
#include "daemon/streams/journal_pace.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/registry.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::service {

class JournalTopics {
 public:
  /// `most` is journal-max.
  JournalTopics(const Committed& committed, const ClusterTopics& cluster, Requests& requests,
                streams::Outbox& outbox, log::EventLog& log, std::size_t most, transport::LoopHolds& holds,
                const Program& program, Deferral& deferral);

  void journal(const Call& call) { follow(call, std::nullopt); }
  /// Serves a consumer as journal() does, from the position that it reached in an earlier process.
  void resume(const Call& call, const streams::JournalPosition& position) { follow(call, position); }

  void set_most(std::size_t most) { journal_.set_most(most); }
  void set_most_consumers(std::size_t most) noexcept { journal_.set_most_consumers(most); }
  [[nodiscard]] std::size_t consumers() const noexcept { return journal_.consumers(); }
  [[nodiscard]] std::uint64_t lag() const noexcept { return journal_.lag(); }

  /// Adds an event that was applied, with the targets that it concerns.
  void append(log::LoggedEvent event, text::IdSet ranks) {
    journal_.append(std::move(event), std::move(ranks));
  }
  /// Called when all events up to this one are on disk.
  void on_committed(log::Sequence last);
  /// Called when a client whose transport was full may have room again.
  void on_writable();
  /// Called when a request other than for the journal was served.
  void served_another() { pace_.served_another(program_.steady_now()); }
  /// Serves the consumers, now or as soon as it is their turn.
  void flush();
  /// Removes a consumer that is gone.
  void release(const streams::JournalConsumer& gone) { journal_.remove(gone.consumer); }

 private:
  void follow(const Call& call, const std::optional<streams::JournalPosition>& position);
  void serve();
  /// Called when a journal ended because the log on disk is damaged.
  void on_damaged_log(const Error& error);
  /// Called when a consumer without credit may have room again.
  void on_room();

  const Committed& committed_;
  const ClusterTopics& cluster_;
  Requests& requests_;
  transport::LoopHolds& holds_;
  const Program& program_;
  /// Also called from other threads, by the journal's credit.
  Deferral& deferral_;
  streams::Journal journal_;
  streams::JournalPace pace_;
  /// The next slice is scheduled.
  bool is_due_ = false;
  peers::RateLimit damages_;
};

}  // namespace resourced::daemon::service
