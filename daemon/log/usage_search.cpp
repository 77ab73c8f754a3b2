#include "daemon/log/usage_search.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/snapshot_rows.hpp"

namespace resourced::daemon::log {

using module::Micros;
using module::Month;
using proto::topics::ReportBy;

namespace {

// Bounds a step to some tens of milliseconds.
constexpr std::size_t targets_per_step = 100'000;
// How often a report begins, at the most, as the log may be trimmed meanwhile.
constexpr int most_beginnings = 4;

[[noreturn]] void not_recorded() {
  throw Error(ENODATA, "the states of that time are not recorded, or not kept any more");
}

}  // namespace

UsageWalk::UsageWalk(const PastSources& sources, UsageSums& sums, Sequence after, WallTime from,
                     Sequence last, module::UsageTally::By by)
    : sources_(sources), sums_(sums), tally_(from, by), after_(after), last_(std::max(last, after)) {}

bool UsageWalk::advance() {
  try {
    step();
  } catch (const Error& error) {
    if (error.errnum() == ENODATA || !pass_damage()) throw;
  }
  const Month month = tally_.month();
  if (month != complete_until_ && sums_.add(tally_, month)) complete_until_ = month;
  return stage_ == Stage::counts && search_.is_done();
}

void UsageWalk::step() {
  if (stage_ == Stage::begins) search_ = sources_.past.begin_at(after_);
  if (stage_ != Stage::counts) {
    stage_ = Stage::finds_states;
    sources_.past.advance(search_);
    if (!search_.is_done()) return;
    // The states may begin later than the counted time, and the time up to them is missing.
    if (const WallTime begin = sources_.log.time_of(after_); begin > tally_.now()) tally_.skip({}, begin);
    search_.last = last_;
    stage_ = Stage::counts;
    return;
  }
  std::size_t work = 0;
  sources_.past.advance(search_, events_per_snapshot,
                        [&](const module::State& states, const module::Event& event) {
                          work += tally_.add(states, event);
                          return work < targets_per_step;
                        });
}

bool UsageWalk::pass_damage() {
  Sequence next = stage_ == Stage::counts ? search_.at : after_;
  for (next = sources_.past.snapshot_from(next + 1); next != 0 && next <= last_;
       next = sources_.past.snapshot_from(next + 1)) {
    try {
      PastReader::Search found = sources_.past.begin_at(next);
      // That snapshot is damaged as well, and an earlier one was found in its place.
      if (found.at != next) continue;
      tally_.skip(states(), sources_.log.time_of(next));
      search_ = std::move(found);
      search_.last = last_;
      stage_ = Stage::counts;
      return true;
    } catch (const Error&) {
      continue;
    }
  }
  return false;
}

void UsageWalk::finish(WallTime until, bool is_known) {
  if (is_known) {
    tally_.finish(states(), until);
  } else {
    tally_.skip(states(), until);
  }
}

bool UsageWalk::hand_over() { return sums_.add(tally_, tally_.month() + 1); }

ReportSearch::ReportSearch(const PastSources& sources, const proto::topics::ReportRequest& request)
    : sources_(sources),
      request_(request),
      until_(request.until.value_or(request.since)),
      sums_(request.by) {}

bool ReportSearch::advance() {
  try {
    if (!has_begun_) {
      begin();
    } else if (next_month_ <= last_month_) {
      add_month();
    } else {
      return walk();
    }
    return !walk_ && next_month_ > last_month_;
  } catch (const Error& error) {
    if (error.errnum() != ENODATA || !has_begun_ || ++begun_again_ >= most_beginnings) throw;
    has_begun_ = false;
    return false;
  }
}

proto::topics::Report ReportSearch::report() {
  proto::topics::Report report = sums_.report(request_.limit);
  report.since = known_from_;
  report.until = known_until_;
  return report;
}

// A damaged end of the roll-ups does not matter to a report about a time that the log has.
std::optional<RolledUp> ReportSearch::end_of_roll_ups() {
  try {
    return sources_.usage.rolled_up();
  } catch (const Error& error) {
    const bool is_in_log = request_.since >= sources_.log.time_of(sources_.log.dropped() + 1);
    if (error.errnum() != EBADMSG || !is_in_log) throw;
    return std::nullopt;
  }
}

void ReportSearch::begin() {
  sums_.clear();
  walk_.reset();
  is_walked_ = false;
  known_from_ = request_.since;
  known_until_ = until_;
  next_month_ = 0;
  last_month_ = -1;
  const Micros since = module::to_micros(request_.since);
  const Micros until = module::to_micros(until_);
  rolled_up_ = end_of_roll_ups();
  const bool has_months = rolled_up_ && since < rolled_up_->until && until > rolled_up_->since;
  WallTime from = request_.since;
  if (has_months) {
    from = module::from_micros(rolled_up_->until);
    next_month_ = module::month_of(std::max(since, rolled_up_->since));
    known_from_ = module::from_micros(std::max(module::begin_of(next_month_), rolled_up_->since));
    has_begun_ = true;
    if (until <= rolled_up_->until) {
      last_month_ = module::month_of(until - 1);
      known_until_ = module::from_micros(std::min(module::begin_of(last_month_ + 1), rolled_up_->until));
      return;
    }
    // An event at the end of the roll-ups counts in the month that begins there.
    last_month_ = module::month_of(rolled_up_->until);
  }
  const Sequence before = has_months ? rolled_up_->sequence : sources_.log.last_until(request_.since);
  const Sequence first = sources_.past.reachable(before);
  if (first == 0) not_recorded();
  if (first != before && sources_.log.time_of(first) > from) {
    // Events after the roll-ups were dropped without being rolled up, up to a later time than asked for.
    if (has_months && sources_.log.time_of(first) >= until_) {
      known_until_ = from;
      return;
    }
    if (!has_months) known_from_ = from = sources_.log.time_of(first);
  }
  if (from >= until_) not_recorded();
  has_begun_ = true;
  walk_.emplace(sources_, sums_, first, from, sources_.log.last_until(until_),
                module::UsageTally::By{request_.by == ReportBy::host, request_.by == ReportBy::property});
}

void ReportSearch::add_month() {
  const std::string text = sources_.usage.month(next_month_);
  // The roll-ups were extended: the month may have events that are still to be read from the log. They are
  // compared after the month was read, as the writing thread can come between.
  if (sources_.usage.rolled_up() != rolled_up_) throw Error(ENODATA, "the log was trimmed meanwhile");
  sums_.add(next_month_, text);
  ++next_month_;
}

bool ReportSearch::walk() {
  if (is_walked_) return walk_->hand_over();
  try {
    if (!walk_->advance()) return false;
    walk_->finish(until_);
  } catch (const Error& error) {
    if (error.errnum() == ENODATA) throw;
    // The log tells nothing of the time after the damage.
    walk_->finish(until_, false);
  }
  is_walked_ = true;
  return false;
}

RollUpSearch::RollUpSearch(const PastSources& sources, Sequence last) : sources_(sources) {
  before_ = sources_.usage.sound_end();
  const Sequence dropped = sources_.log.dropped();
  Sequence first = before_ ? before_->sequence : 0;
  if (!before_ || first < dropped) first = sources_.past.reachable(std::max<Sequence>(dropped, 1));
  if (first == 0 || first > last)
    throw Error(EBADMSG, fmt::format("there are no states from which event {} can be reached", last));
  const WallTime from = before_ ? module::from_micros(before_->until) : sources_.log.time_of(first);
  result_.end.sequence = last;
  result_.end.since = before_ ? before_->since : module::to_micros(from);
  walk_.emplace(sources_, sums_, first, from, last, module::UsageTally::By{true, true});
}

bool RollUpSearch::advance() {
  if (!is_walked_) {
    if (!walk_->advance()) return false;
    walk_->finish(sources_.log.time_of(result_.end.sequence));
    result_.end.until = module::to_micros(walk_->now());
    is_walked_ = true;
  } else if (!has_months_) {
    has_months_ = walk_->hand_over();
    if (has_months_) months_ = sums_.months();
  } else if (!months_.empty()) {
    const Month month = months_.back();
    months_.pop_back();
    add_before(month);
    result_.texts.emplace_back(month, sums_.month_text(month));
  }
  return has_months_ && months_.empty();
}

void RollUpSearch::add_before(Month month) {
  if (!before_) return;
  try {
    sums_.add(month, sources_.usage.month(month));
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    // The text of the month is damaged: its times are missing from now on.
    sums_.add_missing(month, before_->until - std::max(module::begin_of(month), before_->since));
  }
}

}  // namespace resourced::daemon::log
