#include "daemon/log/usage_walk.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/snapshot_rows.hpp"
#include "proto/usage_json.hpp"

namespace resourced::daemon::log {

using module::Micros;
using module::Month;
using module::UsageTable;

namespace {

// Bounds a step to some tens of milliseconds.
constexpr std::size_t targets_per_step = 100'000;
// How often a report begins, at the most, as the log may be trimmed meanwhile.
constexpr int most_beginnings = 4;

[[noreturn]] void not_recorded() {
  throw Error(ENODATA, "the states of that time are not recorded, or not kept any more");
}

}  // namespace

UsageWalk::UsageWalk(const PastSources& sources, Sequence after, WallTime from, Sequence last,
                     module::UsageMeter::By by)
    : sources_(sources), meter_({}, from, by), after_(after), last_(std::max(last, after)) {}

bool UsageWalk::advance() {
  try {
    if (!has_states_) {
      find_states();
    } else {
      read_events();
    }
    return has_states_ && at_ >= last_;
  } catch (const Error& error) {
    if (error.errnum() == ENODATA || !pass_damage()) throw;
    return at_ >= last_;
  }
}

void UsageWalk::find_states() {
  if (!search_) search_ = sources_.past.begin_at(after_);
  sources_.past.advance(*search_);
  if (!search_->is_done()) return;
  // The states may begin later than the counted time, and the time up to them is missing.
  if (const WallTime begin = sources_.log.time_of(after_); begin > meter_.now()) meter_.skip_to(begin);
  meter_.adopt(std::move(search_->states));
  search_.reset();
  at_ = after_;
  has_states_ = true;
}

void UsageWalk::read_events() {
  if (next_in_page_ >= page_.events.size()) {
    EventFilter all;
    all.allocations = true;
    all.hidden = true;
    page_ = sources_.log.page(all, at_ + 1, std::min(last_, at_ + events_per_snapshot), events_per_snapshot);
    if (page_.has_gap) throw Error(ENODATA, "the log was trimmed meanwhile");
    next_in_page_ = 0;
  }
  for (std::size_t work = 0; work < targets_per_step && next_in_page_ < page_.events.size();) {
    const LoggedEvent& logged = page_.events[next_in_page_];
    const proto::FindDocument find = [&](const std::string& name) {
      // A trim may have dropped the document since the page was read.
      if (sources_.log.dropped() >= logged.sequence) throw Error(ENODATA, "the log was trimmed meanwhile");
      return sources_.log.document(name);
    };
    work += meter_.add(event_of(logged, find));
    at_ = logged.sequence;
    ++next_in_page_;
  }
  if (next_in_page_ >= page_.events.size()) at_ = page_.next - 1;
}

bool UsageWalk::pass_damage() {
  search_.reset();
  page_ = {};
  next_in_page_ = 0;
  Sequence next = has_states_ ? at_ : after_;
  for (next = sources_.past.snapshot_from(next + 1); next != 0 && next <= last_;
       next = sources_.past.snapshot_from(next + 1)) {
    try {
      PastReader::Search found = sources_.past.begin_at(next);
      // That snapshot is damaged as well, and an earlier one was found in its place.
      if (found.at != next) continue;
      meter_.skip_to(sources_.log.time_of(next));
      meter_.adopt(std::move(found.states));
      at_ = next;
      has_states_ = true;
      return true;
    } catch (const Error&) {
      continue;
    }
  }
  return false;
}

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
    walk_.reset();
    return false;
  }
}

// A damaged end of the roll-ups does not matter to a report about a time that the log has.
std::optional<RolledUp> ReportSearch::end_of_roll_ups() {
  try {
    return sources_.usage.rolled_up();
  } catch (const Error& error) {
    const bool is_in_log = question_.since >= sources_.log.time_of(sources_.log.dropped() + 1);
    if (error.errnum() != EBADMSG || !is_in_log) throw;
    return std::nullopt;
  }
}

void ReportSearch::begin() {
  report_ = {question_.since, question_.until, {}};
  next_month_ = 0;
  last_month_ = -1;
  const Micros since = module::to_micros(question_.since);
  const Micros until = module::to_micros(question_.until);
  rolled_up_ = end_of_roll_ups();
  Sequence first = 0;
  if (rolled_up_ && since < rolled_up_->until && until > rolled_up_->since) {
    next_month_ = module::month_of(std::max(since, rolled_up_->since));
    report_.from = module::from_micros(std::max(module::begin_of(next_month_), rolled_up_->since));
    has_begun_ = true;
    if (until <= rolled_up_->until) {
      last_month_ = module::month_of(until - 1);
      report_.until = module::from_micros(std::min(module::begin_of(last_month_ + 1), rolled_up_->until));
      return;
    }
    // An event at the end of the roll-ups counts in the month that begins there.
    last_month_ = module::month_of(rolled_up_->until);
    first = sources_.past.reachable(rolled_up_->sequence);
    if (first == 0) not_recorded();
    // Events after the roll-ups were dropped without being rolled up, up to a later time than asked for.
    if (sources_.log.time_of(first) >= question_.until && first > rolled_up_->sequence) {
      report_.until = module::from_micros(rolled_up_->until);
      return;
    }
    walk_.emplace(sources_, first, module::from_micros(rolled_up_->until),
                  sources_.log.last_until(question_.until), question_.by);
    return;
  }
  const Sequence before = sources_.log.last_until(question_.since);
  first = sources_.past.reachable(before);
  if (first == 0) not_recorded();
  if (first != before) report_.from = std::max(question_.since, sources_.log.time_of(first));
  if (report_.from >= question_.until) not_recorded();
  has_begun_ = true;
  walk_.emplace(sources_, first, report_.from, sources_.log.last_until(question_.until), question_.by);
}

void ReportSearch::add_month() {
  UsageTable table = sources_.usage.month(next_month_);
  // The roll-ups were extended: the month may have events that are still to be read from the log. They are
  // compared after the month was read, as the writing thread can come between.
  if (sources_.usage.rolled_up() != rolled_up_) throw Error(ENODATA, "the log was trimmed meanwhile");
  add_table(next_month_, std::move(table));
  ++next_month_;
}

void ReportSearch::add_table(Month month, UsageTable table) {
  if (!question_.by.hosts) table.hosts.clear();
  if (!question_.by.properties) table.properties.clear();
  report_.tables[question_.by.months ? month : 0] += table;
}

bool ReportSearch::walk() {
  try {
    if (!walk_->advance()) return false;
    walk_->meter().finish(question_.until);
  } catch (const Error& error) {
    if (error.errnum() == ENODATA) throw;
    // Nothing is known of the time after the damage.
    walk_->meter().skip_to(question_.until);
  }
  for (auto& [month, table] : walk_->meter().take()) add_table(month, std::move(table));
  return true;
}

RollUpSearch::RollUpSearch(const PastSources& sources, Sequence last) : sources_(sources) {
  result_.before = sources_.usage.sound_end();
  const Sequence dropped = sources_.log.dropped();
  Sequence first = result_.before ? result_.before->sequence : 0;
  if (!result_.before || first < dropped) first = sources_.past.reachable(std::max<Sequence>(dropped, 1));
  if (first == 0 || first > last)
    throw Error(EBADMSG, fmt::format("there are no states from which event {} can be reached", last));
  const WallTime from =
      result_.before ? module::from_micros(result_.before->until) : sources_.log.time_of(first);
  result_.after.sequence = last;
  result_.after.since = result_.before ? result_.before->since : module::to_micros(from);
  walk_.emplace(sources_, first, from, last, module::UsageMeter::By{true, true, true});
}

bool RollUpSearch::advance() {
  if (!is_walked_) {
    if (!walk_->advance()) return false;
    walk_->meter().finish(sources_.log.time_of(result_.after.sequence));
    result_.after.until = module::to_micros(walk_->meter().now());
    tables_ = walk_->meter().take();
    is_walked_ = true;
  } else if (!tables_.empty()) {
    auto entry = tables_.extract(tables_.begin());
    add_before(entry.key(), entry.mapped());
    result_.tables.emplace_back(entry.key(), proto::encode_usage_table(entry.mapped()));
  }
  return is_walked_ && tables_.empty();
}

void RollUpSearch::add_before(Month month, UsageTable& table) {
  if (!result_.before) return;
  try {
    table += sources_.usage.month(month);
  } catch (const Error& error) {
    if (error.errnum() != EBADMSG) throw;
    // The table of the month is damaged: its times are missing from now on.
    table.missing += result_.before->until - std::max(module::begin_of(month), result_.before->since);
  }
}

}  // namespace resourced::daemon::log
