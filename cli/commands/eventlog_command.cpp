// resourcectl eventlog: the journal of the daemon (RFC 44), its history and new events.
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/views/views.hpp"
#include "core/error.hpp"
#include "process/loop.hpp"
#include "proto/event_json.hpp"
#include "proto/topics/journal.hpp"

namespace resourced::cli::commands {

namespace {

struct EventlogOptions {
  bool follow = false;
  std::string wait_for;
  std::string timeout;
  std::string targets;
  std::string since;
  bool json = false;
  bool allocations = false;
  bool whole = false;
};

/// Prints the events of the responses until the options are satisfied.
class Reader {
 public:
  Reader(const Context& context, const EventlogOptions& options) : context_(context), options_(options) {}

  void receive(const client::Response& response) {
    if (done_) return;
    if (!response.ok()) {
      // The daemon has ended the journal: success for --follow without --wait, an error otherwise.
      const bool is_end = response.error().errnum() == ENODATA;
      if (!is_end || !options_.follow || !options_.wait_for.empty()) throw Error(response.error());
      done_ = true;
      return;
    }
    const auto payload = response.payload();
    const nlohmann::json* events = proto::topics::find_journal_events(payload);
    if (events == nullptr) throw Error(EPROTO, "the daemon sent a journal response without events");
    // An empty batch marks the end of the history.
    past_is_told_ |= events->empty();
    done_ = past_is_told_ && !options_.follow && options_.wait_for.empty();
    for (const auto& event : *events) {
      if (done_) return;
      show(event);
      ++count_;
    }
  }

  void stop() noexcept { done_ = true; }
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] bool past_is_told() const noexcept { return past_is_told_ || done_; }
  /// The number of events received.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  void show(const nlohmann::json& event) {
    // Throws if it is not an event.
    const auto line = views::format_event(event);
    context_.print_line(options_.json ? event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                                      : line);
    if (!options_.wait_for.empty() && proto::read_event_entry(event).name == options_.wait_for) done_ = true;
  }

  const Context& context_;
  const EventlogOptions& options_;
  std::uint64_t count_ = 0;
  bool past_is_told_ = false;
  bool done_ = false;
};

std::string in_seconds(client::Milliseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

/// The error for a history that does not end. `how` continues its text.
Error no_end(const client::Connection& connection, const Reader& reader, std::string_view how) {
  return {ETIMEDOUT, fmt::format("resource.journal: {}: the history did not end: {} events {}",
                                 connection.uri(), reader.count(), how)};
}

Error no_answer(const client::Connection& connection, const std::string& time) {
  return {ETIMEDOUT, fmt::format("resource.journal: no answer from {} within {}", connection.uri(), time)};
}

/// Throws Error ETIMEDOUT if the history does not come, stops in the middle, or does not end. Later events
/// have no time limit.
class PastWatch {
 public:
  /// `silence` is the longest time between two responses. With `must_end` the whole history may take
  /// `most_silences` times as long.
  PastWatch(client::Connection& connection, const Reader& reader, client::Milliseconds silence, bool must_end)
      : connection_(connection), reader_(reader), silence_(silence) {
    restart();
    if (!must_end) return;
    const auto most = silence * most_silences;
    connection_.after(most, [this, most] {
      if (!reader_.past_is_told()) throw no_end(connection_, reader_, "within " + in_seconds(most));
    });
  }

  void on_response() {
    connection_.cancel_timer(timer_);
    if (!reader_.past_is_told()) restart();
  }

 private:
  static constexpr int most_silences = 20;

  void restart() {
    timer_ = connection_.after(silence_, [this] {
      if (reader_.past_is_told()) return;
      if (reader_.count() == 0) throw no_answer(connection_, in_seconds(silence_));
      throw no_end(connection_, reader_, "and then no answer within " + in_seconds(silence_));
    });
  }

  client::Connection& connection_;
  const Reader& reader_;
  client::Milliseconds silence_;
  client::Connection::TimerId timer_ = 0;
};

void read_journal(Context& context, const EventlogOptions& options) {
  const auto timeout = parse_timeout(options.timeout);
  auto& connection = context.connection();
  process::SignalLoop loop;
  Reader reader(context, options);
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
  }
  proto::topics::JournalRequest request;
  if (!options.since.empty()) request.since = parse_time(options.since, context.now(), Unsigned::back);
  if (!options.targets.empty()) request.targets = options.targets;
  request.allocations = options.allocations;
  client::SendOptions send_options;
  send_options.streaming = true;
  connection.send(
      "resource.journal", proto::topics::encode_journal(request),
      [&](const client::Response& response) {
        reader.receive(response);
        if (watch) watch->on_response();
      },
      send_options);
  loop.work_until(
      connection.fd(), [&] { connection.process(); }, [&] { return reader.done(); });
  connection.close();
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

void register_eventlog(CLI::App& app, Context& context) {
  auto options = std::make_shared<EventlogOptions>();
  auto* command = app.add_subcommand("eventlog", "Print the journal of resource events");
  command->add_flag("-F,--follow", options->follow, "Then print new events as they happen");
  command->add_option("-w,--wait", options->wait_for, "End after the first event of this name, past or new");
  command->add_option(
      "-t,--timeout", options->timeout,
      "End after this duration; this is a failure, except with -F alone. Default: the history "
      "may pause for 30 seconds and take 10 minutes, new events have no limit");
  command->add_option(
      "--since", options->since,
      "Only events at or after this time: seconds since the epoch, a date (ISO 8601), or a duration "
      "such as 2h, back from now");
  command->add_flag("--json", options->json, "Print events as JSON, one object a line");
  command->add_flag("--allocations", options->allocations,
                    "Also the records of the ledger of allocations: alloc and free");
  auto* whole = command->add_flag(
      "--export", options->whole,
      "Print the whole history in the store as an event log (RFC 18) for resourced --import");
  add_targets_option(*command, options->targets);
  // An import needs the whole log: a part of it does not determine the present state.
  for (const char* part : {"--follow", "--wait", "--since", "-i"}) {
    whole->excludes(command->get_option(part));
  }
  command->callback([options, &context] {
    if (options->whole) {
      options->json = true;
      options->since = "0";
      options->allocations = true;
    }
    read_journal(context, *options);
  });
}

}  // namespace resourced::cli::commands
