// resourcectl ping, stats, reload, backup: about the daemon itself.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/commands/context.hpp"
#include "cli/commands/interrupts.hpp"
#include "cli/commands/options.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/moves.hpp"
#include "core/error.hpp"
#include "core/text/idset.hpp"
#include "os/loop.hpp"
#include "proto/topics/diagnostics.hpp"
#include "proto/topics/operate.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

namespace {

struct PingOptions {
  std::uint64_t count = 0;
  std::string interval = "1s";
  bool json = false;
};

/// Sends pings, one at a time, and prints a line for each answer, and a summary if there may be several.
class Pinger {
 public:
  Pinger(Context& context, const PingOptions& options)
      : context_(context),
        connection_(context.connection()),
        count_(options.count > 0 || context.terminal() ? options.count : 1),
        interval_(parse_timeout(options.interval).value_or(longest_interval)),
        is_json_(options.json) {}

  void run() {
    // Connect first, so that the first time does not include the connection.
    connection_.connect();
    os::SignalLoop loop;
    const Interrupts interrupts(loop);
    ask();
    (void)loop.work_until(
        connection_.fd(), [&] { connection_.process(); }, [&] { return is_over_; });
    if (count_ != 1) summarize();
    interrupts.check();
    if (failure_) throw Error(*failure_);
  }

 private:
  static constexpr client::Milliseconds longest_interval = std::chrono::hours(24);
  /// A ping without an answer at the end counts as lost if it was sent at least this long ago.
  static constexpr client::Milliseconds soon = std::chrono::seconds(1);
  using Clock = std::chrono::steady_clock;
  using TimeInMs = std::chrono::duration<double, std::milli>;

  void ask() {
    client::SendOptions how;
    how.timeout = context_.timeout();
    const auto start = Clock::now();
    if (sent_ == 0) began_ = start;
    last_sent_ = start;
    connection_.send(
        "resource.ping", proto::topics::encode_ping(sent_++),
        [this, start](const client::Response& response) { take(response, Clock::now() - start); }, how);
  }

  void take(const client::Response& response, Clock::duration took) {
    if (!response.ok()) {
      failure_ = response.error();
    } else if (proto::topics::parse_ping_answer(response.payload()) != sent_ - 1) {
      failure_ = Error(EPROTO, "the daemon did not echo the ping");
    } else {
      show(std::chrono::duration_cast<TimeInMs>(took).count());
    }
    is_over_ = failure_.has_value() || sent_ == count_;
    if (is_over_) return;
    const auto rest = std::chrono::ceil<client::Milliseconds>(interval_ - took);
    connection_.after(std::max(rest, client::Milliseconds(0)), [this] { ask(); });
  }

  void show(double time) {
    least_ = answers_ == 0 ? time : std::min(least_, time);
    most_ = std::max(most_, time);
    sum_ += time;
    const std::uint64_t sequence = answers_++;
    context_.print_line(is_json_
                            ? nlohmann::ordered_json{{"seq", sequence}, {"time_ms", time}}.dump()
                            : fmt::format("{}: seq={} time={:.3f} ms", connection_.uri(), sequence, time));
  }

  void summarize() {
    if (is_json_) return;
    const auto now = Clock::now();
    const std::uint64_t sent = sent_ > answers_ && !failure_ && now - last_sent_ < soon ? sent_ - 1 : sent_;
    const std::uint64_t lost = sent - answers_;
    const double lost_part = sent == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(sent);
    const double whole = std::chrono::duration<double>(now - began_).count();
    context_.print_line(fmt::format("--- {} ping statistics ---", connection_.uri()));
    context_.print_line(fmt::format("{} sent, {} answered, {:.0f}% lost, time {:.3f}s", sent, answers_,
                                    100.0 * lost_part, whole));
    if (answers_ > 0)
      context_.print_line(fmt::format("rtt min/avg/max = {:.3f}/{:.3f}/{:.3f} ms", least_,
                                      sum_ / static_cast<double>(answers_), most_));
  }

  Context& context_;
  client::Connection& connection_;
  /// Number of pings; 0 until the user ends the command.
  std::uint64_t count_;
  client::Milliseconds interval_;
  bool is_json_;
  Clock::time_point began_;
  Clock::time_point last_sent_;
  std::uint64_t sent_ = 0;
  std::uint64_t answers_ = 0;
  double least_ = 0;
  double most_ = 0;
  double sum_ = 0;
  bool is_over_ = false;
  std::optional<Error> failure_;
};

struct BackupOptions {
  std::string file;
  std::string config;
  std::string state;
};

/// Replaces this program by the daemon's in the same directory, which can read the store.
[[noreturn]] void back_up(const BackupOptions& options) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown) throw Error(unknown.value(), fmt::format("/proc/self/exe: {}", unknown.message()));
  // A value beside its option is not taken for another option if it begins with a dash.
  std::vector<std::string> words{(self.parent_path() / "resourced").string(), "--backup=" + options.file};
  if (!options.config.empty()) words.push_back("--config=" + options.config);
  if (!options.state.empty()) words.push_back("--state=" + options.state);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments.front(), arguments.data());
  throw Error(errno, fmt::format("{}: {}", words.front(), std::strerror(errno)));
}

void register_backup(usage::Command& app) {
  auto options = std::make_shared<BackupOptions>();
  auto* backup = app.add_subcommand(
      "backup", "Copy the store of the daemon of this host to a new file, while it runs, and check the copy");
  backup->add_option("FILE", options->file, "The new file; resourced --recover-to FILE goes back to it")
      ->required();
  backup->add_option("--config", options->config, "The configuration of the daemon, if it has one of its own")
      ->type_name("PATH");
  backup->add_option("--state", options->state, "The state directory of the daemon, if it was given one")
      ->type_name("DIR");
  backup->callback([options] { back_up(*options); });
}

}  // namespace

void register_daemon(usage::Command& app, Context& context) {
  register_backup(app);
  auto options = std::make_shared<PingOptions>();
  auto* ping_command = app.add_subcommand("ping", "Measure the round-trip time to the daemon");
  require_count(
      *ping_command->add_option("-c,--count", options->count,
                                "The number of requests. Default: until Ctrl-C on a terminal, 1 elsewhere"));
  ping_command->add_option("-i,--interval", options->interval, "The time between two requests, such as 0.2s")
      ->type_name("DURATION")
      ->capture_default_str();
  ping_command->add_flag("--json", options->json, "One JSON object for each round trip");
  ping_command->callback([options, &context] { Pinger(context, *options).run(); });

  auto* stats = app.add_subcommand("stats", "Print the counters of the daemon as JSON");
  auto clear = std::make_shared<bool>(false);
  stats->add_flag("--clear", *clear, "Reset the counters to 0 instead of printing them");
  stats->callback([clear, &context] {
    if (*clear) {
      context.call("resource.stats-clear");
      return;
    }
    std::istringstream lines(context.call("resource.stats-get").dump(context.terminal() ? 2 : -1));
    for (std::string line; std::getline(lines, line);) context.print_line(line);
  });

  struct ReloadOptions {
    std::string path;
    bool force = false;
    ReportOptions report;
  };
  auto reload_options = std::make_shared<ReloadOptions>();
  auto* reload = app.add_subcommand(
      "reload", "Reload the configuration of the daemon, or replace its inventory by an R");
  auto* path = reload->add_option("PATH", reload_options->path, "An R file, on the host of the daemon");
  reload->add_flag("-f,--force", reload_options->force, "Load an R with more ranks than the instance has")
      ->needs(path);
  add_report_options(*reload, reload_options->report);
  reload->callback([reload_options, path, &context] {
    nlohmann::ordered_json object{{"change", "reload"}};
    std::string text = "reloaded the configuration";
    // A scheduler is not told of targets that join its partition, or are to leave it.
    proto::topics::Division division;
    if (path->count() == 0) {
      division = proto::topics::parse_division(context.call("resource.reload"));
    } else {
      const std::string absolute = std::filesystem::absolute(reload_options->path).string();
      context.call("resource.reload", proto::topics::encode_reload({absolute, reload_options->force}));
      object["path"] = absolute;
      text = "loaded the inventory from " + absolute;
    }
    const ReportOptions& report = reload_options->report;
    if (report.quiet) return;
    const auto all = text::IdSet::range(0, text::IdSet::max_id);
    if (const auto moves = views::moves_of(division, all); !moves.empty()) object["moves"] = moves;
    context.print_line(report.json ? object.dump() : text);
    if (!report.json) context.out() << views::moves_text(division, all);
  });
}

}  // namespace resourced::cli::commands
