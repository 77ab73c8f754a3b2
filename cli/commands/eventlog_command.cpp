// resourcectl eventlog: the journal of the daemon (RFC 44), its history and new events.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/cursor_file.hpp"
#include "cli/commands/interrupts.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/event_text.hpp"
#include "client/journal.hpp"
#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/duration.hpp"
#include "core/text/nearest.hpp"
#include "core/text/quote.hpp"
#include "core/time.hpp"
#include "os/loop.hpp"
#include "os/user_name.hpp"
#include "proto/event_json.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

using nlohmann::json;

namespace {

struct EventlogOptions {
  bool follow = false;
  std::string wait_for;
  std::vector<std::string> match;
  std::string timeout;
  NamedTargets targets;
  std::string since;
  std::string until;
  std::size_t newest = 0;
  std::string cursor;
  std::string time_format;
  std::string format;
  bool human = false;
  bool json = false;
  bool allocations = false;
  bool whole = false;
};

views::EventTimes time_format(const EventlogOptions& options, bool is_terminal) {
  const bool is_human = options.time_format == "human" || options.time_format == "reltime";
  if (options.human || is_human) return views::EventTimes::human;
  if (options.time_format == "offset") return views::EventTimes::offset;
  const bool is_iso = options.time_format.empty() ? is_terminal : options.time_format == "iso";
  return is_iso ? views::EventTimes::iso : views::EventTimes::raw;
}

/// Returns the inventory to which ranks in events refer; empty while the daemon has none.
rset::ResourceSet fetch_inventory(Context& context) {
  try {
    return proto::topics::parse_status(context.call("resource.status")).inventory;
  } catch (const Error& error) {
    if (error.errnum() == EAGAIN || error.errnum() == ENOENT) return {};
    throw;
  }
}

/// Reads the journal and prints its events until the options are satisfied.
///
/// For the newest events (-n) the reader requests the number of the last one, and then a range before it,
/// which it extends until it has enough events. So a long history is not read as a whole.
class Reader : public client::JournalObserver {
 public:
  Reader(Context& context, const EventlogOptions& options, client::JournalOptions wanted,
         std::optional<WallTime> until, views::ContextMatch match, std::optional<views::TargetClip> clip)
      : context_(context),
        options_(options),
        wanted_(std::move(wanted)),
        until_(until),
        formatter_(time_format(options, context.terminal()),
                   context.terminal() ? views::UserName(os::user_name) : nullptr),
        match_(std::move(match)),
        clip_(std::move(clip)) {
    if (!options.cursor.empty()) {
      cursor_.emplace(options.cursor);
      wanted_.after = cursor_->number();
    }
    client::JournalOptions of_last;
    of_last.since = last_time;
    of_last.follow_restart = wanted_.follow_restart;
    read(options.newest > 0 ? of_last : wanted_);
  }

  /// This function is called after each response, and when the journal is lost.
  std::function<void()> on_change = [] {};

  void stop() noexcept { done_ = true; }
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] bool past_is_told() const noexcept { return past_is_told_ || done_; }
  [[nodiscard]] bool is_lost() const noexcept { return is_lost_; }
  /// Returns the number of received events.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  void read(const client::JournalOptions& wanted) { journal_.emplace(context_.connection(), *this, wanted); }

  void on_events(const client::JournalBatch& batch) override {
    if (done_) return;
    if (std::exchange(is_lost_, false)) {
      context_.warn("following again");
      on_change();
    }
    const auto last = batch.last();
    if (cursor_ && !last) throw Error(ENOSYS, "--cursor: the events of this daemon have no numbers");
    if (options_.newest > 0 && !is_searching_) {
      is_searching_ = true;
      newest_ = last;
      return ask_for_newest();
    }
    for (const json& event : batch.json()) {
      if (done_) return;
      ++count_;
      if (until_ && views::read_head(event).timestamp > *until_) return end_past();
      take_event({clip_ ? clip_->clip(event) : event, is_awaited(event)});
    }
    // An empty batch marks the end of the history.
    if (batch.empty()) end_past();
    // Store the cursor after the events were printed and flushed.
    if (cursor_) cursor_->write(*last);
    on_change();
  }

  /// An event as it is shown, and whether the command ends after it.
  struct Shown {
    json event;
    bool is_last = false;
  };

  [[nodiscard]] bool is_awaited(const json& event) const {
    return !options_.wait_for.empty() && views::read_head(event).name == options_.wait_for &&
           match_.is_met_by(event);
  }

  void take_event(Shown shown) {
    if (past_is_told_ || options_.newest == 0) return show(shown);
    newest_events_.push_back(std::move(shown));
    if (newest_events_.size() > options_.newest) newest_events_.pop_front();
  }

  /// Requests a longer range than before. Without numbers it is the whole history.
  void ask_for_newest() {
    constexpr std::uint64_t growth = 4;
    stretch_ = stretch_ == 0 ? std::max<std::uint64_t>(options_.newest, least_stretch) : stretch_ * growth;
    newest_events_.clear();
    if (newest_) wanted_.after = *newest_ > stretch_ ? *newest_ - stretch_ : 0;
    read(wanted_);
  }

  void end_past() {
    if (past_is_told_) return;
    const bool is_whole = !wanted_.after || *wanted_.after == 0;
    if (options_.newest > newest_events_.size() && !is_whole) return ask_for_newest();
    past_is_told_ = true;
    for (const Shown& shown : std::exchange(newest_events_, {})) {
      if (!done_) show(shown);
    }
    done_ = done_ || until_ || (!options_.follow && options_.wait_for.empty());
  }

  void show(const Shown& shown) {
    // Throws if it is not an event.
    const auto line = formatter_.format(shown.event);
    context_.print_line(options_.json ? json_text::text_of(shown.event) : line);
    if (shown.is_last) done_ = true;
  }

  // Handles the end of the journal by the daemon: success for --follow without --wait, an error otherwise.
  void on_error(const Error& error) override {
    if (done_) return;
    if (std::string_view(error.what()).starts_with("after: "))
      throw Error(error.errnum(), fmt::format("{}{}: {} has another event log than before",
                                              cursor_ ? options_.cursor + ": " : "", error.what(),
                                              context_.connection().uri()));
    if (error.errnum() != ENODATA || !options_.follow || !options_.wait_for.empty()) throw Error(error);
    done_ = true;
  }

  void on_lost(const Error& why) override {
    if (!options_.follow) return on_error(why);
    is_lost_ = true;
    context_.warn(fmt::format("{}; waiting for the daemon", why.what()));
    on_change();
  }

  static constexpr std::uint64_t least_stretch = 100;

  Context& context_;
  const EventlogOptions& options_;
  client::JournalOptions wanted_;
  std::optional<WallTime> until_;
  /// A terminal shows names of users.
  views::EventFormatter formatter_;
  views::ContextMatch match_;
  std::optional<views::TargetClip> clip_;
  std::optional<CursorFile> cursor_;
  /// For -n: whether the search for the newest events is under way, the number of the last event, and how
  /// many events before it were requested.
  bool is_searching_ = false;
  std::optional<std::uint64_t> newest_;
  std::uint64_t stretch_ = 0;
  std::deque<Shown> newest_events_;
  std::uint64_t count_ = 0;
  bool past_is_told_ = false;
  bool is_lost_ = false;
  bool done_ = false;
  std::optional<client::Journal> journal_;
};

/// Returns the error for a history that does not end; `how` continues its text.
Error no_end(const client::Connection& connection, const Reader& reader, std::string_view how) {
  return {ETIMEDOUT, fmt::format("resource.journal: {}: the history did not end: {} events {}",
                                 connection.uri(), reader.count(), how)};
}

Error no_answer(const client::Connection& connection, const std::string& time) {
  return {ETIMEDOUT, fmt::format("resource.journal: no answer from {} within {}", connection.uri(), time)};
}

/// Watches the history: throws Error ETIMEDOUT if it does not arrive, stops in the middle, or does not end.
/// Later events have no time limit.
class PastWatch {
 public:
  /// Starts to watch. `silence` is the longest time between two responses. With `must_end` the whole history
  /// may take `most_silences` times as long.
  PastWatch(client::Connection& connection, const Reader& reader, client::Milliseconds silence, bool must_end)
      : connection_(connection), reader_(reader), silence_(silence) {
    restart();
    if (!must_end) return;
    const auto most = silence * most_silences;
    connection_.after(most, [this, most] {
      if (!reader_.past_is_told())
        throw no_end(connection_, reader_, "within " + text::format_duration(most));
    });
  }

  void on_change() {
    connection_.cancel_timer(timer_);
    if (!reader_.past_is_told() && !reader_.is_lost()) restart();
  }

 private:
  static constexpr int most_silences = 20;

  void restart() {
    timer_ = connection_.after(silence_, [this] {
      if (reader_.past_is_told()) return;
      if (reader_.count() == 0) throw no_answer(connection_, text::format_duration(silence_));
      throw no_end(connection_, reader_, "and then no answer within " + text::format_duration(silence_));
    });
  }

  client::Connection& connection_;
  const Reader& reader_;
  client::Milliseconds silence_;
  client::Connection::TimerId timer_ = 0;
};

/// Returns the time for --since or --until. Events are shown with the nearest second, so a date in whole
/// seconds includes all that are shown with it.
WallTime first_shown_as(const std::string& text, WallTime now) {
  const WallTime time = parse_time(text, now, Unsigned::back);
  return is_date_in_seconds(text) ? std::max(time - Seconds(0.5), WallTime{}) : time;
}
WallTime last_shown_as(const std::string& text, WallTime now) {
  const WallTime time = parse_time(text, now, Unsigned::back);
  return is_date_in_seconds(text) ? time + Seconds(0.499999) : time;
}

client::JournalOptions request_of(Context& context, const EventlogOptions& options, WallTime now) {
  client::JournalOptions request;
  if (!options.since.empty()) request.since = first_shown_as(options.since, now);
  if (std::string targets = options.targets.text(context); !targets.empty())
    request.targets = std::move(targets);
  request.allocations = options.allocations;
  request.own = true;
  request.follow_restart = options.follow;
  return request;
}

/// Checks the name of an event to wait for: a wait for an unknown one would never end.
std::string check_event_name(const std::string& name) {
  const auto names = views::event_names();
  if (std::ranges::find(names, name) != names.end()) return {};
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto meant = text::nearest(name, known);
  return fmt::format("unknown event {}: {}known are {}", text::quoted(name),
                     meant ? fmt::format("did you mean {}? ", *meant) : "", fmt::join(known, ", "));
}

void read_journal(Context& context, const EventlogOptions& options) {
  if (proto::is_ledger_name(options.wait_for) && !options.allocations)
    throw views::UsageError(fmt::format("eventlog: --wait {} requires --allocations", options.wait_for));
  // Read the pairs first, so that a wrong one is reported without a request to the daemon.
  views::ContextMatch match(options.match);
  const client::JournalOptions request = request_of(context, options, context.now());
  std::optional<WallTime> until;
  if (!options.until.empty()) until = last_shown_as(options.until, context.now());
  const auto timeout = parse_timeout(options.timeout);
  auto& connection = context.connection();
  // Clip events only for a person: the sets then have only the named targets, while a program gets events
  // unchanged. Request this before the loop takes the signals, so that Ctrl-C ends the wait for the answer.
  std::optional<views::TargetClip> clip;
  if (request.targets && context.terminal() && !options.json)
    clip.emplace(*request.targets, fetch_inventory(context));
  os::SignalLoop loop;
  const Interrupts interrupts(loop);
  Reader reader(context, options, request, until, std::move(match), std::move(clip));
  const bool must_end = !options.follow && options.wait_for.empty();
  bool timed_out = false;
  std::optional<PastWatch> watch;
  if (timeout) {
    connection.after(*timeout, [&] {
      timed_out = !reader.done();
      reader.stop();
    });
  } else {
    watch.emplace(connection, reader, context.timeout(), must_end);
    reader.on_change = [&] { watch->on_change(); };
  }
  loop.work_until(
      connection.fd(), [&] { connection.process(); }, [&] { return reader.done(); });
  connection.close();
  interrupts.check();
  // With --follow alone, the timeout is a normal end. With --wait it is a failure.
  if (timed_out && !options.wait_for.empty()) {
    throw Error(ETIMEDOUT, fmt::format("no event {} within {}", options.wait_for, options.timeout));
  }
  if (timed_out && must_end) {
    if (reader.count() == 0) throw no_answer(connection, options.timeout);
    throw no_end(connection, reader, "within " + options.timeout);
  }
}

}  // namespace

void register_eventlog(usage::Command& app, Context& context) {
  auto options = std::make_shared<EventlogOptions>();
  auto* command = app.add_subcommand("eventlog", "Print the journal of resource events");
  command->add_flag("-F,--follow", options->follow,
                    "After the history, print new events as they happen, also after a restart of the daemon");
  command->add_option("-w,--wait", options->wait_for, "End after the first event of this name, past or new")
      ->type_name("EVENT")
      ->check(check_event_name, "");
  command
      ->add_option(
          "-m,--match-context", options->match,
          "With --wait: end only after an event whose context has this value, JSON or a text; a text that "
          "looks like a number is written with quotes: idset='\"1\"'. May be given several times")
      ->type_name("KEY=VALUE")
      ->needs(command->get_option("--wait"))
      ->expected(1)
      ->take_all();
  command
      ->add_option("-t,--timeout", options->timeout,
                   "End after this duration; this is a failure, except with -F alone. Default: the history "
                   "may pause for 30 seconds and take 10 minutes, new events have no limit")
      ->type_name("DURATION");
  command
      ->add_option(
          "--since", options->since,
          "Only events at or after this time: seconds since the epoch, a date (ISO 8601), or a duration "
          "such as 2h, back from now. A date in whole seconds has all events that are shown with it")
      ->type_name("TIME");
  command
      ->add_option("--until", options->until, "Only events at or before this time, in the forms of --since")
      ->type_name("TIME");
  auto* newest = command->add_option("-n,--last", options->newest,
                                     "Number of events to print, counted from the last one");
  require_count(*newest);
  command
      ->add_option("--cursor", options->cursor,
                   "Keep the number of the last printed event in this file: the next run with it prints "
                   "later ones alone")
      ->type_name("FILE");
  command
      ->add_option(
          "-T,--time-format", options->time_format,
          "raw (seconds since the epoch), iso (local time), offset (seconds since the first printed "
          "event) or human (local time, within a minute the seconds since it; also reltime). Default: "
          "iso on a terminal, raw elsewhere. JSON is always raw")
      ->type_name("FORM")
      ->one_of({"raw", "iso", "offset", "human", "reltime"});
  command->add_flag("-H,--human", options->human, "The same as --time-format human")
      ->excludes(command->get_option("--time-format"));
  auto* format = command
                     ->add_option("-f,--format", options->format,
                                  "text (a line for each event) or json (one object a line). Default: text")
                     ->type_name("FORM")
                     ->one_of({"text", "json"});
  command->add_flag("--json", options->json, "The same as --format json")
      ->excludes(format)
      ->excludes(command->get_option("--human"));
  command->add_flag("--allocations", options->allocations,
                    "Also the records of the ledger of allocations: alloc, alloc-update and free");
  auto* whole = command->add_flag(
      "--export", options->whole,
      "Print the whole history in the store as an event log (RFC 18) for resourced --import");
  add_targets_option(*command, options->targets);
  // An import needs the whole log: a part of it does not determine the present state.
  for (const char* part : {"--follow", "--wait", "--since", "--until", "--last", "--cursor", "-i", "-q"}) {
    whole->excludes(command->get_option(part));
  }
  // An export has one form, in which times are numbers.
  for (const char* form : {"--format", "--human", "--time-format"})
    whole->excludes(command->get_option(form));
  // These options leave out events of a response, so the number of the last one would not be that of the last
  // printed event.
  for (const char* part : {"--wait", "--until", "--last"}) {
    command->get_option("--cursor")->excludes(command->get_option(part));
  }
  command->get_option("--until")->excludes(command->get_option("--follow"));
  command->callback([options, &context] {
    if (options->format == "json") options->json = true;
    if (options->human && options->json)
      throw UsageError("eventlog: --human excludes --format json, in which times are numbers");
    if (options->whole) {
      options->json = true;
      options->since = "0";
      options->allocations = true;
    }
    read_journal(context, *options);
  });
}

}  // namespace resourced::cli::commands
