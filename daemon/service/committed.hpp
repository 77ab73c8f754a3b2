// The state as of the last committed event. It is what reads show, so that none of them waits for a commit or
// reveals an event that a crash could undo.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "core/module/state.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/log/records.hpp"

namespace resourced::daemon::service {

class Committed {
 public:
  /// An event that the log has not committed yet.
  struct Event {
    engine::Record record;
    /// Whether a scheduler has caused it by an allocation or a free.
    bool is_of_scheduler = false;
    /// When the log got it.
    SteadyTime since{};
    /// On a standby: whether the leader has decided the event, which is then checked before it is applied.
    bool is_followed = false;
    /// On a standby: the state after it, if it comes with all of it, and why it cannot be read.
    std::shared_ptr<const module::State> snapshot = nullptr;
    std::optional<Error> failure = std::nullopt;
  };

  /// `state` is that after event `last`.
  Committed(module::State state, log::Sequence last) : state_(std::move(state)), last_(last) {}

  /// Sets the state after event last(), with which the engine begins.
  void begin(module::State state) { state_ = std::move(state); }
  /// Adds the next event.
  void add(Event event);
  /// Adds the next event of the leader, and returns the targets that it concerns. After an event that cannot
  /// be read or applied the state is not known, until a later event comes with all of it.
  text::IdSet follow(const log::Record& record, SteadyTime now);
  /// Applies these events up to `last`, one after the other, and calls visit(Event) after each.
  template <class Visit>
  void commit(log::Sequence last, const Visit& visit) {
    while (!waiting_.empty() && waiting_.front().record.sequence <= last) {
      const Event event = std::move(waiting_.front());
      waiting_.pop_front();
      apply(event);
      visit(event);
    }
  }
  /// Returns when the log got the first event that it has not committed yet; nothing if there is none.
  [[nodiscard]] std::optional<SteadyTime> waits_since() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().since);
  }

  /// Throws Error that says why the state is not known.
  void require_known() const {
    if (failure_) throw Error(*failure_);
  }
  /// Returns the state; an empty one while it is not known.
  [[nodiscard]] const module::State& state() const noexcept { return state_; }
  /// Returns the last committed event.
  [[nodiscard]] log::Sequence last() const noexcept { return last_; }
  /// Returns the last event, committed or not, that changes the inventory or the exclusions; 0 for none.
  [[nodiscard]] log::Sequence inventory_change() const noexcept { return inventory_change_; }
  /// Returns a number that grows with each change of the inventory or the exclusions.
  [[nodiscard]] std::uint64_t inventory_version() const noexcept { return inventory_version_; }

 private:
  void apply(const Event& event);

  module::State state_;
  log::Sequence last_;
  /// Why the state is not known.
  std::optional<Error> failure_;
  std::uint64_t inventory_version_ = 1;
  log::Sequence inventory_change_ = 0;
  std::deque<Event> waiting_;
};

}  // namespace resourced::daemon::service
