// The topic resource.journal. Serves its consumers in slices, at a limited pace while other requests are
// served.
#pragma once

#include <cstdint>
#include <functional>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/streams/journal.hpp"
#include "daemon/streams/journal_pace.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/registry.hpp"
#include "daemon/transport/loop_hold.hpp"

namespace resourced::daemon::service {

class JournalTopics {
 public:
  /// Runs a function on the loop after a time, unless the loop has ended by then. With a time of 0 it may be
  /// called from any thread.
  using Later = std::function<void(Seconds, std::function<void()>)>;

  /// `targets` returns those that a request can name, `check_after` throws if a journal cannot go on after
  /// this event, `most` is journal-max, `uptime` the steady time.
  JournalTopics(std::function<const rset::ResourceSet&()> targets,
                std::function<void(log::Sequence)> check_after, Requests& requests, streams::Outbox& outbox,
                log::EventLog& log, std::size_t most, transport::LoopHolds& holds,
                std::function<SteadyTime()> uptime, Later later);

  void journal(const Call& call) { follow(call, std::nullopt); }
  /// The same for a consumer that an earlier process has served.
  void resume(const Call& call, const streams::JournalPosition& position) { follow(call, position); }

  void set_most(std::size_t most) { journal_.set_most(most); }
  void set_most_consumers(std::size_t most) noexcept { journal_.set_most_consumers(most); }
  [[nodiscard]] std::size_t consumers() const noexcept { return journal_.consumers(); }
  [[nodiscard]] std::uint64_t lag() const noexcept { return journal_.lag(); }

  /// An event was applied, which concerns these targets.
  void append(log::LoggedEvent event, text::IdSet ranks) {
    journal_.append(std::move(event), std::move(ranks));
  }
  /// All events up to this one are on disk.
  void on_committed(log::Sequence last);
  /// A client whose transport was full may have room again.
  void on_writable();
  /// Another request than one for the journal was served.
  void served_another() { pace_.served_another(uptime_()); }
  /// Serves the consumers, now or as soon as it is their turn.
  void flush();
  /// A consumer is gone.
  void release(const streams::JournalConsumer& gone) { journal_.remove(gone.consumer); }

 private:
  void follow(const Call& call, const std::optional<streams::JournalPosition>& position);
  void serve();
  /// A journal ended because the log on disk is damaged.
  void on_damaged_log(const Error& error);
  /// A consumer without credit may have room again.
  void on_room();

  std::function<const rset::ResourceSet&()> targets_;
  std::function<void(log::Sequence)> check_after_;
  Requests& requests_;
  transport::LoopHolds& holds_;
  std::function<SteadyTime()> uptime_;
  // Declared before the journal: its credit may call it from other threads until the journal is destroyed.
  Later later_;
  streams::Journal journal_;
  streams::JournalPace pace_;
  /// The next slice is scheduled.
  bool is_due_ = false;
  peers::RateLimit damages_;
};

}  // namespace resourced::daemon::service
