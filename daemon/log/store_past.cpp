// The past of the store: questions, snapshots, and trims.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <utility>

#include "daemon/log/past_reader.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_copy.hpp"
#include "daemon/log/store_install.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"

namespace resourced::daemon::log {

namespace {

void set_failure(Past& result, const Error& error) { result.failure = error; }
template <class Value>
void set_failure(std::variant<Value, Error>& result, const Error& error) {
  result = error;
}

// Makes the steps of a task on the past. `step` gets the search, which it begins, and the result, and returns
// false until it has filled the result. If the base of the search was dropped meanwhile, it begins again
// once, as another base may lead to the answer.
template <class Search, class Result, class Step>
std::function<bool()> steps_of(Step step, const std::function<void(std::function<void()>)>& post,
                               std::function<void(Result)> answer) {
  const auto search = std::make_shared<std::optional<Search>>();
  return [search, step = std::move(step), &post, answer = std::move(answer), is_again = false]() mutable {
    auto result = std::make_shared<Result>();
    try {
      if (!step(*search, *result)) return false;
    } catch (const Error& error) {
      if (error.errnum() == ENODATA && *search && !std::exchange(is_again, true)) {
        search->reset();
        return false;
      }
      set_failure(*result, error);
    }
    search->reset();
    post([result, answer] { answer(std::move(*result)); });
    return true;
  };
}

void check_wanted(const std::atomic<bool>& is_abandoned) {
  if (is_abandoned) throw Error(ECANCELED, "nobody waits for the answer any more");
}

}  // namespace

void Store::ask_past(PastTask task, bool first) {
  const std::lock_guard lock(questions_mutex_);
  if (first) {
    past_tasks_.push_front(std::move(task));
  } else {
    past_tasks_.push_back(std::move(task));
  }
  asked_.notify_one();
}

void Store::take(ReadPast&& question) {
  auto answer = std::move(question.answer);
  const auto step = [this, question = std::move(question)](std::optional<PastReader::Search>& search,
                                                           Past& past) {
    check_wanted(*question.is_abandoned);
    if (!search) search = past_->begin(question.at);
    past_->advance(*search);
    if (!search->is_done()) return false;
    const module::State& states = search->states;
    if (!states.defined) throw Error(ENODATA, "at that time no inventory was known");
    if (!states.keeps_past()) {
      throw Error(ENODATA,
                  "at that time the resources were those of a Flux instance, whose states are not kept here");
    }
    past.text = question.render(states, search->at);
    past.sequence = search->at;
    return true;
  };
  ask_past({steps_of<PastReader::Search, Past>(step, callbacks_.post, std::move(answer))}, false);
}

void Store::take(ReadUsage&& question) {
  auto answer = std::move(question.answer);
  const auto step = [this, question = std::move(question)](std::optional<ReportSearch>& search, Past& past) {
    check_wanted(*question.is_abandoned);
    if (!search) search.emplace(sources(), question.request);
    if (!search->advance()) return false;
    past.text = proto::topics::encode_report(search->report(), question.request.by);
    return true;
  };
  ask_past({steps_of<ReportSearch, Past>(step, callbacks_.post, std::move(answer)), true}, false);
}

void Store::copy(std::size_t most_bytes, std::function<void(std::variant<CopiedStore, Error>)> answer) {
  using Copy = std::variant<CopiedStore, Error>;
  const auto step = [this, most_bytes](std::optional<PastReader::Search>& search, Copy& copy) {
    if (!search) search = past_->begin_at(reader_->last());
    past_->advance(*search);
    if (!search->is_done()) return false;
    copy = copy_store(*reading_connection_, search->at, search->states, copy_path(writer_->database().path()),
                      most_bytes);
    return true;
  };
  const auto take = [this, answer = std::move(answer)](Copy copy) {
    // A copy needs the states, so the next record brings a snapshot if they cannot be found.
    if (const auto* error = std::get_if<Error>(&copy))
      wants_snapshot_ = wants_snapshot_ || error->errnum() == ENODATA || error->errnum() == EBADMSG;
    answer(std::move(copy));
  };
  ask_past({steps_of<PastReader::Search, Copy>(step, callbacks_.post, take), true}, false);
}

void Store::extend_snapshots() {
  const Sequence last = writer_->last();
  {
    const std::lock_guard lock(mutex_);
    if (is_extended_ || !queue_.empty() || last - std::min(last, chained_) < stride_) return;
    is_extended_ = true;
  }
  const auto search = std::make_shared<std::optional<PastReader::Search>>();
  ask_past({[this, last, search] { return extend_snapshots_to(last, *search); }}, false);
}

bool Store::extend_snapshots_to(Sequence last, std::optional<PastReader::Search>& search) {
  Sequence from = 0;
  {
    const std::lock_guard lock(mutex_);
    from = chained_;
  }
  Sequence stride = events_per_snapshot;
  try {
    if (!search) {
      // Earlier snapshots may have been dropped. A log that is there from its beginning needs none.
      if (past_->snapshot_until(from) == 0 && reader_->dropped() > 0) from = past_->snapshot_from(from);
      if (from == 0 && reader_->dropped() > 0) return end_extension(last, stride);
      stride = past_->stride_after(from);
      Sequence next = past_->snapshot_from(from + 1);
      for (; next > 0 && next - from <= stride; next = past_->snapshot_from(from + 1)) {
        from = next;
        stride = past_->stride_after(from);
      }
      if (next == 0 && last - std::min(last, from) < stride) return end_extension(from, stride);
      search = past_->begin_at(from);
      search->last = search->at + stride;
    }
    past_->advance(*search);
    if (!search->is_done()) return false;
    hand_over(PastRows{SnapshotRow(search->at, search->states)}, std::nullopt);
    return end_extension(search->at, events_per_snapshot);
  } catch (const Error&) {
    // A reader that comes to the damage reports it. The states after it are found from the next snapshot.
    from = past_->snapshot_from((search ? search->at : from) + 1);
    wants_snapshot_ = wants_snapshot_ || from == 0;
    return end_extension(from == 0 ? last : from, events_per_snapshot);
  }
}

bool Store::end_extension(Sequence snapshot, Sequence stride) {
  const std::lock_guard lock(mutex_);
  chained_ = snapshot;
  stride_ = stride;
  is_extended_ = false;
  return true;
}

// A trim that is prepared. The states after the last event that it drops are the beginning of the past that
// is kept, and the dropped events are in the roll-ups. If the log cannot be read, another snapshot is the
// beginning.
struct Store::TrimBase {
  Trim trim;
  /// The last event that may be dropped; trim.last may be before it.
  Sequence reach = 0;
  std::optional<RollUpSearch> search = std::nullopt;
  bool has_retreated = false;
  bool is_handed_over = false;
};

void Store::prepare_trim(WallTime before) {
  {
    const std::lock_guard lock(mutex_);
    if (is_trimming_) {
      trim_next_ = before;
      return;
    }
    is_trimming_ = true;
  }
  look_for_base(before);
}

void Store::look_for_base(WallTime before) {
  const auto base = std::make_shared<TrimBase>(TrimBase{{before}});
  const auto step = [this, base] {
    if (!find_base(*base)) return false;
    if (!base->is_handed_over) end_trim();
    return true;
  };
  ask_past({step, true}, false);
}

void Store::end_trim() {
  std::optional<WallTime> next;
  {
    const std::lock_guard lock(mutex_);
    next = std::exchange(trim_next_, std::nullopt);
    is_trimming_ = next.has_value();
  }
  if (next) look_for_base(*next);
}

bool Store::find_base(TrimBase& base) {
  try {
    if (!base.search) {
      begin_base(base);
      return !base.search;
    }
    if (!base.search->advance()) return false;
    hand_over(base, PastRows{SnapshotRow(base.trim.last, base.search->states()), base.search->result()});
  } catch (const Error& error) {
    // An earlier trim has dropped the events meanwhile, or the disk or the memory failed: the next trim tries
    // again.
    const bool is_of_data = error.errnum() != EIO && error.errnum() != EBUSY && error.errnum() != ENOMEM;
    if (!is_of_data || (base.search && error.errnum() == ENODATA)) return true;
    return !retreat(base);
  }
  return true;
}

void Store::begin_base(TrimBase& base) {
  // A roll-up writes the sums of all hosts. It waits until about as many bytes are dropped, but not longer
  // than this.
  constexpr std::size_t small_roll_up = std::size_t{64} << 10U;
  constexpr Seconds longest_wait{3600};
  constexpr std::size_t usual_event = 256;
  // Bounds the time that one roll-up takes.
  constexpr Sequence most_events = 100'000;
  const auto last_before = [this](WallTime time) {
    return reader_->last_until(wall_time(std::nextafter(to_number(time), 0.0)));
  };
  Trim& trim = base.trim;
  const Sequence dropped = reader_->dropped();
  // Events of one time stay together, as a start has several, and a snapshot stands beside the last of them.
  // If all events have one time, they are divided.
  const Sequence newest = std::max<Sequence>(reader_->last(), 1);
  const Sequence older = last_before(reader_->time_of(newest));
  trim.last = std::min(last_before(trim.before), older > dropped ? older : newest - 1);
  base.reach = trim.last;
  if (trim.last <= dropped) return;
  const auto rolled_up = usage_->sound_end();
  if (rolled_up && rolled_up->sequence > dropped) {
    // An earlier trim has not dropped all events that it rolled up. These are dropped first.
    const bool is_due = rolled_up->sequence <= trim.last;
    trim = {trim.before, rolled_up->sequence, true};
    if (is_due) hand_over(base, std::nullopt);
    return;
  }
  const Sequence start = rolled_up && rolled_up->sequence == dropped
                             ? dropped
                             : past_->reachable(std::max<Sequence>(dropped, 1));
  // No state leads to the present any more, so the next record brings a snapshot.
  if (start == 0) {
    wants_snapshot_ = true;
    return;
  }
  // No state leads to the events that are due, but a later snapshot leads to the present: drop them without a
  // roll-up.
  if (start > trim.last) return hand_over(base, std::nullopt);
  const WallTime first = reader_->time_of(dropped + 1);
  const std::size_t size = usage_->last_size();
  if (size > small_roll_up && (trim.last - dropped) * usual_event < size &&
      trim.before - first < longest_wait) {
    return;
  }
  // Trims month by month, so that there are never the sums of all hosts for many months in memory.
  const module::Month month = module::month_of(module::to_micros(first));
  Sequence last_of_part = last_before(module::from_micros(module::begin_of(month + 1)));
  if (const Sequence most = dropped + most_events; last_of_part > most) {
    const Sequence cut = last_before(reader_->time_of(most));
    last_of_part = cut > dropped ? cut : most;
  }
  trim.is_part = last_of_part < trim.last;
  trim.last = std::min(trim.last, last_of_part);
  // No state leads to the events before `start` either: drop them without a roll-up.
  if (start > trim.last) {
    trim.last = start;
    return hand_over(base, std::nullopt);
  }
  base.search.emplace(sources(), trim.last);
}

bool Store::retreat(TrimBase& base) {
  const bool is_first = !std::exchange(base.has_retreated, true);
  try {
    Sequence snapshot = past_->snapshot_until(base.trim.last);
    const Sequence next = past_->snapshot_from(base.trim.last + 1);
    wants_snapshot_ = wants_snapshot_ || next == 0;
    if (is_first && snapshot <= reader_->dropped()) snapshot = next;
    // Nothing can be dropped until there is another snapshot.
    if (snapshot <= reader_->dropped() || snapshot > base.reach) return false;
    base.trim.last = snapshot;
    if (is_first) {
      base.search.emplace(sources(), snapshot);
      return true;
    }
    // The trim drops all earlier snapshots, so this one must be whole.
    if (past_->begin_at(snapshot).at != snapshot) return false;
  } catch (const Error&) {
    // Nothing can be dropped without a state that leads to the present.
    return false;
  }
  hand_over(base, std::nullopt);
  return false;
}

void Store::hand_over(TrimBase& base, std::optional<PastRows> rows) {
  base.is_handed_over = true;
  hand_over(std::move(rows), base.trim);
}

void Store::hand_over(std::optional<PastRows> rows, std::optional<Trim> trim) {
  const std::lock_guard lock(mutex_);
  if (rows) snapshots_.push_back(*std::move(rows));
  if (trim) trim_ = trim;
  wake_.notify_one();
}

// Snapshots and roll-ups can be made again, so a full disk does not end the daemon for them.
bool Store::write_snapshots(const std::vector<PastRows>& rows) {
  try {
    for (const PastRows& row : rows) writer_->write_past(row.snapshot, row.usage ? &*row.usage : nullptr);
    return true;
  } catch (const Error& error) {
    if (error.errnum() != ENOSPC) throw;
    return false;
  }
}

}  // namespace resourced::daemon::log
