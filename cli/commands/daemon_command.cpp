// resourcectl ping, stats, reload: about the daemon itself.
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "core/error.hpp"
#include "proto/topics/diagnostics.hpp"
#include "proto/topics/operate.hpp"

namespace resourced::cli::commands {

namespace {

/// The round-trip time in milliseconds.
double ping(Context& context, std::uint64_t sequence) {
  const nlohmann::json payload = proto::topics::encode_ping(sequence);
  const auto start = std::chrono::steady_clock::now();
  const auto answer = context.call("resource.ping", payload);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  if (proto::topics::parse_ping_answer(answer) != sequence) {
    throw Error(EPROTO, "the daemon did not echo the ping");
  }
  return time.count();
}

}  // namespace

void register_daemon(CLI::App& app, Context& context) {
  struct PingOptions {
    std::uint64_t count = 1;
    bool json = false;
  };
  auto options = std::make_shared<PingOptions>();
  auto* ping_command = app.add_subcommand("ping", "Measure the round-trip time to the daemon");
  require_count(*ping_command->add_option("-c,--count", options->count, "The number of requests"));
  ping_command->add_flag("--json", options->json, "One JSON object for each round trip");
  ping_command->callback([options, &context] {
    // Connect first, so that the first time does not include the connection.
    context.connection().connect();
    for (std::uint64_t i = 0; i < options->count; ++i) {
      const double time = ping(context, i);
      context.print_line(options->json
                             ? nlohmann::ordered_json{{"seq", i}, {"time_ms", time}}.dump()
                             : fmt::format("{}: seq={} time={:.3f} ms", context.connection().uri(), i, time));
    }
  });

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
    if (path->count() == 0) {
      context.call("resource.reload");
    } else {
      const std::string absolute = std::filesystem::absolute(reload_options->path).string();
      context.call("resource.reload", proto::topics::encode_reload({absolute, reload_options->force}));
      object["path"] = absolute;
      text = "loaded the inventory from " + absolute;
    }
    if (!reload_options->report.quiet) context.print_line(reload_options->report.json ? object.dump() : text);
  });
}

}  // namespace resourced::cli::commands
