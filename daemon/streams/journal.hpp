// resource.journal (RFC 44): the event log as streams. A consumer is a position in the log, so unread events
// take no memory for it, and events are encoded once for all consumers that read the same stretch. Recent
// events are kept in memory, older ones are read from the store a page at a time. Only events on disk are
// sent.
//
// Consumers are served in rounds. A round sends each consumer at most one message, with events that were on
// disk when the round began, so that consumers stay in step. A round is served in slices, between which the
// loop serves other requests; the caller decides when the next slice may run (journal_pace.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/log/records.hpp"
#include "daemon/streams/journal_credit.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/position.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"
#include "proto/topics/journal.hpp"

namespace resourced::daemon::streams {

class Journal {
 public:
  /// Maximum number of events in a response.
  static constexpr std::size_t batch = 1000;
  /// Maximum total size of the targets that one follower has named, in bytes (FilterBytes).
  static constexpr std::size_t max_filter_bytes = std::size_t{16} << 20;

  /// `registry` keeps the request of each consumer until remove(). `most` is journal-max. `room` is called
  /// from any thread when a consumer may have room again, once until answer_room().
  Journal(Outbox& outbox, const Registry& registry, log::EventLog& log, std::size_t most,
          std::function<void()> room);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  Journal(Journal&&) = delete;
  Journal& operator=(Journal&&) = delete;

  /// Adds an event that was applied. Sequences come in order without gaps.
  void append(log::LoggedEvent event, text::IdSet ranks);
  /// Reports that all events up to this one are on disk.
  void committed(log::Sequence last);
  void set_most(std::size_t most);

  void set_most_consumers(std::size_t most) noexcept { most_consumers_ = most; }

  /// Returns the targets that a follower names: those of the previous call if its text was the same and they
  /// are still in use, as the streams of one program often name the same targets. Throws Error EBUSY if the
  /// targets of the follower would take more than max_filter_bytes.
  [[nodiscard]] std::shared_ptr<log::NamedTargets> share(std::string text, const rset::ResourceSet& inventory,
                                                         const std::string& follower);
  /// Adds a consumer, which continues at `position` if that is set. `follower` is the name of its principal.
  /// Throws Error EBUSY if the follower has too many journals or its targets take too much memory, ENOSYS for
  /// an `after` if the log does not number events.
  ConsumerId add(proto::RequestKey request, proto::topics::JournalRequest wanted,
                 const rset::ResourceSet& inventory, const std::string& follower,
                 const std::optional<JournalPosition>& position = std::nullopt);
  /// Removes a consumer. Ignores one that is gone.
  void remove(ConsumerId consumer);
  /// Returns whether a consumer's transport was full; the transport reports when it has room again.
  [[nodiscard]] bool blocked() const noexcept { return blocked_; }
  [[nodiscard]] std::size_t consumers() const noexcept { return consumers_.size(); }
  /// Returns how many events on disk the slowest consumer has not been given yet.
  [[nodiscard]] log::Sequence lag() const noexcept;
  /// Returns the number of followers with journals or targets, and of idle ones that are not removed yet.
  [[nodiscard]] std::size_t followers() const noexcept { return followers_.size(); }

  /// Requests another round, as there may be messages to send.
  void wake() noexcept { wanted_ = true; }
  void answer_room() noexcept { bell_->answer(); }

  struct Slice {
    /// Clients that were found to be gone.
    std::vector<proto::ClientId> gone;
    /// Streams that ended with an error: the consumer accepted no data while more than journal-max events
    /// happened, was behind the history that the store keeps, named unknown hosts, or reached damage in the
    /// log.
    std::vector<std::pair<proto::RequestKey, Error>> ended;
    /// Number of bytes that were handed to transports.
    std::size_t bytes = 0;
    /// Number of messages prepared, stretches searched, and questions to the store.
    std::size_t steps = 0;
    /// Another slice must follow.
    bool more = false;
  };
  /// Serves some consumers: sends each a message if there is one and it has room.
  [[nodiscard]] Slice serve();

 private:
  struct Entry {
    log::LoggedEvent event;
    text::IdSet ranks;
  };
  // States of a consumer, and their transitions:
  //
  //   Asking ──the store answers──► Ready, Holding or Failed
  //   Ready ──its turn, and there are events──► Holding or Asking
  //   Holding ──sent──► Ready        Holding ──the client is gone──► Over
  //   Ready, Holding ──the client takes nothing──► Over
  //   Failed ──its turn──► Over

  /// The consumer waits for an answer of the store.
  struct Asking {};
  /// The consumer's next message is made when there are events for it.
  struct Ready {};
  /// The consumer's next message waits for its turn or for room.
  struct Holding {
    proto::Payload payload;
    /// The last event in the payload.
    log::Sequence after = 0;
  };
  /// The consumer ends with this error at its next turn.
  struct Failed {
    Error error;
  };
  /// The caller of serve() was told of the consumer's end, and removes it.
  struct Over {};

  struct Consumer {
    proto::RequestKey request;
    std::string follower;
    log::EventFilter filter;
    /// The first event that the consumer was not given yet.
    log::Sequence next = 0;
    std::variant<Asking, Ready, Holding, Failed, Over> state;
    /// The position of a consumer that an earlier process has served.
    std::optional<JournalPosition> position;
    /// The history and the sentinel have been prepared for the consumer.
    bool live = false;
    Credit credit;
    /// State of the log when the consumer ran out of room: the last event on disk, and the number of ledger
    /// records. Unset again once the consumer accepts data.
    struct Stuck {
      log::Sequence at = 0;
      log::Sequence ledger = 0;
    };
    std::optional<Stuck> stuck;

    template <class State>
    [[nodiscard]] bool is() const noexcept {
      return std::holds_alternative<State>(state);
    }
    /// Sets the state to Holding, or to Ready if `payload` is null.
    void hold(proto::Payload payload, log::Sequence after);
  };
  /// An encoded stretch of events, kept since other consumers probably need the same one.
  struct Encoded {
    log::Sequence first = 0;
    log::Sequence next = 0;
    /// The stretch ends where a response was full, before the end that its reader asked for.
    bool is_full = false;
    log::Audiences audiences = {};
    /// The response with the events; null if it would have none.
    proto::Payload payload;
  };
  using Waiters = std::vector<ConsumerId>;

  /// Returns the number of an event for consumers, or nothing if the log does not number events.
  [[nodiscard]] std::optional<log::Sequence> number(log::Sequence sequence) const;
  [[nodiscard]] proto::Payload encode(const std::vector<const log::LoggedEvent*>& events) const;
  /// Returns the response without events, which ends the history after this event.
  [[nodiscard]] const proto::Payload& sentinel(log::Sequence last);
  [[nodiscard]] log::Sequence first_in_memory() const noexcept;
  void trim();
  bool begin_round();
  void serve(ConsumerId id, Consumer& consumer, Slice& slice);
  /// Makes the next message of a consumer, or asks the store for it.
  void prepare(ConsumerId id, Consumer& consumer);
  void send(Consumer& consumer, Slice& slice);
  void find_no_room(Consumer& consumer, Slice& slice);
  static void end(Consumer& consumer, Error error, Slice& slice);
  void ask_store(ConsumerId id, Consumer& consumer, log::Sequence last);
  void ask_store_for_all(ConsumerId id, Consumer& consumer, log::Sequence last);
  void take_in(ConsumerId id, const log::HistoryPage& page, const proto::Payload& payload);
  [[nodiscard]] proto::Payload from_memory(const log::EventFilter& filter, log::Sequence& first,
                                           log::Sequence end);
  /// Returns a stretch from `first` to an end from `least` to `most`, or earlier if its response was full.
  [[nodiscard]] const Encoded* find_encoded(const log::Audiences& audiences, log::Sequence first,
                                            log::Sequence least, log::Sequence most) const;
  void remember(Encoded encoded);
  Consumer* find(ConsumerId id);
  void find_targets(ConsumerId id, const std::shared_ptr<log::NamedTargets>& named);
  void find_start(ConsumerId id, const Consumer& consumer);
  void leave(const std::string& follower);

  struct Follower {
    std::size_t journals = 0;
    std::shared_ptr<log::FilterBytes> bytes = std::make_shared<log::FilterBytes>(0);
    [[nodiscard]] bool is_idle() const { return journals == 0 && bytes.use_count() == 1; }
  };
  Follower& follower_of(const std::string& name);

  Outbox& outbox_;
  const Registry& registry_;
  log::EventLog& log_;
  std::size_t most_;
  log::Sequence committed_ = 0;
  /// Number of ledger records that were appended.
  log::Sequence ledger_ = 0;
  log::Sequence next_sequence_ = 0;
  std::deque<Entry> entries_;
  std::map<ConsumerId, Consumer> consumers_;
  /// Consumers that continue after an event that is not on disk yet, where a store would not know it.
  std::set<ConsumerId> early_;
  std::map<std::string, Follower, std::less<>> followers_;
  std::size_t followers_after_sweep_ = 0;
  /// The inventory of the latest call of share(). Its properties may be outdated, as the look-up of targets
  /// does not use them.
  std::shared_ptr<const rset::ResourceSet> inventory_;
  /// The latest text that named targets, and its targets while they are in use.
  std::string text_;
  std::weak_ptr<log::NamedTargets> targets_;
  std::size_t most_consumers_ = std::numeric_limits<std::size_t>::max();
  ConsumerId last_id_ = 0;
  bool blocked_ = false;
  /// Consumers that wait for the same page of the store.
  std::map<std::pair<log::Sequence, log::Audiences>, Waiters> asked_;
  /// The stretches that were encoded last: consumers that are not in step read at a few positions.
  std::array<Encoded, 4> encoded_;
  std::size_t last_encoded_ = 0;
  /// The latest sentinel.
  proto::Payload sentinel_;
  log::Sequence sentinel_last_ = 0;
  std::shared_ptr<Bell> bell_;

  bool wanted_ = false;
  bool in_round_ = false;
  /// The last event that the present round sends.
  log::Sequence round_end_ = 0;
  /// The consumer that the present round has served last; 0 at its beginning.
  ConsumerId reached_ = 0;
};

}  // namespace resourced::daemon::streams
