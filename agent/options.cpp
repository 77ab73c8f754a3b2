// The command line of resource-agent, see program.hpp.
#include <chrono>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent/program.hpp"
#include "cli/usage/complete.hpp"
#include "cli/usage/describe.hpp"
#include "cli/usage/parser.hpp"
#include "core/error.hpp"
#include "core/text/duration.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::agent {

namespace {

/// Returns a check that runs f on the value of an option. The text of an Error of f describes the defect.
template <class F>
std::function<std::string(const std::string&)> check(F f) {
  return [f](const std::string& text) -> std::string {
    try {
      f(text);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
}

Milliseconds read_interval(const std::string& text) {
  const Seconds time = text::parse_duration(text);
  if (time < shortest_interval || time > longest_interval) {
    throw Error(EINVAL, fmt::format("expected a time from {} s to {} s, found {} s",
                                    Seconds(shortest_interval).count(), Seconds(longest_interval).count(),
                                    time.count()));
  }
  return std::chrono::round<Milliseconds>(time);
}

Seconds read_time(const std::string& text, Seconds least, Seconds most) {
  const Seconds time = text::parse_duration(text);
  if (time < least || time > most) {
    throw Error(EINVAL, fmt::format("expected a time from {} to {}", text::format_duration(least),
                                    text::format_duration(most)));
  }
  return time;
}

constexpr Seconds shortest_check_interval{0.1};
constexpr Seconds shortest_timeout{0.1};
constexpr Seconds longest_check_time{86400};

Seconds read_check_interval(const std::string& text) {
  return read_time(text, shortest_check_interval, longest_check_time);
}

Seconds read_timeout(const std::string& text) {
  return read_time(text, shortest_timeout, longest_check_time);
}

Seconds read_max_age(const std::string& text) { return read_time(text, Seconds(0), longest_check_time); }

/// Texts of the health options, read once the command line is known to be valid.
struct CheckTexts {
  std::string interval;
  std::string max_age;
  std::string timeout;

  void read(Options& options) const {
    if (!interval.empty()) options.check_interval = read_check_interval(interval);
    if (!timeout.empty()) options.check.timeout = read_timeout(timeout);
    if (!max_age.empty()) options.health_max_age = read_max_age(max_age);
    const bool has_checks = !options.check.program.empty() || !options.health_socket.empty();
    options.agent.checks_health = has_checks && !options.check_once;
    if (options.health_socket.empty())
      options.health_socket = options.check_once ? default_health_socket : "";
  }
};

void add_health_options(cli::usage::Command& app, Options& options, CheckTexts& texts) {
  auto* program =
      app.add_option("--health-program", options.check.program,
                     "The path of a program that checks this node. The node is unhealthy, and the daemon "
                     "drains it, if the program exits with another status than 0; the first line that it "
                     "prints is the reason")
          ->type_name("PATH");
  app.add_option("--health-interval", texts.interval, "The time from check to check; default: 5m")
      ->type_name("DURATION")
      ->check(check([](const std::string& text) { read_check_interval(text); }), "")
      ->needs(program);
  app.add_option("--health-timeout", texts.timeout,
                 "A check that takes longer is killed, and has failed; default: 1m")
      ->type_name("DURATION")
      ->check(check([](const std::string& text) { read_timeout(text); }), "")
      ->needs(program);
  app.add_option("--health-socket", options.health_socket,
                 "Take the results of checks from `resource-agent health` at this socket; default: "
                 "$RESOURCED_HEALTH_SOCKET, or none")
      ->type_name("PATH")
      ->envname("RESOURCED_HEALTH_SOCKET")
      ->excludes(program);
  app.add_option(
         "--health-max-age", texts.max_age,
         "The node is unhealthy if no result comes to the socket for this long; 0 for never; default: "
         "$RESOURCED_HEALTH_MAX_AGE, or 15m")
      ->type_name("DURATION")
      ->envname("RESOURCED_HEALTH_MAX_AGE")
      ->check(check([](const std::string& text) { read_max_age(text); }), "");
}

cli::usage::Command* add_health_command(cli::usage::Command& app, Options& options, CheckTexts& texts) {
  auto* health = app.add_subcommand(
      "health", "Run one check of this node, and hand its result to the agent. Prints nothing.");
  health
      ->add_option("--program", options.check.program,
                   "The path of a program that checks this node; default: $RESOURCED_HEALTH_PROGRAM")
      ->type_name("PATH")
      ->envname("RESOURCED_HEALTH_PROGRAM")
      ->required();
  health
      ->add_option("--timeout", texts.timeout,
                   "A check that takes longer is killed, and has failed; default: 1m")
      ->type_name("DURATION")
      ->check(check([](const std::string& text) { read_timeout(text); }), "");
  auto* socket = health
                     ->add_option("--socket", options.health_socket,
                                  fmt::format("The agent's socket; default: $RESOURCED_HEALTH_SOCKET, or {}",
                                              default_health_socket))
                     ->type_name("PATH")
                     ->envname("RESOURCED_HEALTH_SOCKET");
  health
      ->add_option("--report-fd", options.report_descriptor,
                   "Write the result to this open file descriptor instead of the agent's socket")
      ->type_name("NUMBER")
      ->not_negative()
      ->excludes(socket);
  return health;
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  cli::usage::Command app("Reports the hardware of this node to resourced, and keeps the node online there.",
                          "resource-agent");
  std::string interval;
  std::string probe_interval;
  std::string level;
  app.add_option("--uri", options.uri,
                 "The daemon's bus; default: $RESOURCED_URI, or the daemon of this user or host")
      ->type_name("URI");
  app.add_option("--key", options.key_file, "The file with the keys for a tcp: bus; default: $RESOURCED_KEY")
      ->type_name("FILE");
  app.add_option("--hostname", options.hostname, "The name of this node; default: that of the host")
      ->type_name("NAME")
      ->check(check([](const std::string& text) { text::Hostlist().append(text); }), "");
  app.add_option("--interval", interval, "The time between beats, unless the daemon gives one; default: 10s")
      ->type_name("DURATION")
      ->check(check([](const std::string& text) { read_interval(text); }), "");
  app.add_option("--probe-interval", probe_interval,
                 "The time from one reading of the hardware to the next; default: 5m")
      ->type_name("DURATION")
      ->check(check([](const std::string& text) { read_check_interval(text); }), "");
  auto* xml =
      app.add_option("--xml", options.probe.xml,
                     "Report the topology in this file, as lstopo writes it, instead of that of this machine")
          ->type_name("FILE");
  app.add_option("--synthetic", options.probe.synthetic,
                 "Report this synthetic topology (see hwloc(7)) instead of that of this machine")
      ->type_name("TEXT")
      ->excludes(xml);
  app.add_flag("--print", options.print, "Print the R (RFC 20) of this node, and exit");
  app.add_option("--log-level", level,
                 "The least severe level to log: trace, debug, info, warning, error, critical or off")
      ->type_name("LEVEL")
      ->check(check([](const std::string& text) { static_cast<void>(os::parse_level(text)); }), "");
  CheckTexts check_texts;
  add_health_options(app, options, check_texts);
  const cli::usage::Command* health = add_health_command(app, options, check_texts);
  app.set_version_flag("--version", "resource-agent " RESOURCED_VERSION);
  if (cli::usage::is_completion(argc, argv)) {
    std::string candidates;
    parsed.exit_status =
        cli::usage::complete_fixed(app, cli::usage::words_to_complete(argc, argv), candidates);
    out << candidates << std::flush;
    return parsed;
  }
  if (argc == 2 && argv[1] == cli::usage::describe_word) {
    out << cli::usage::describe(app).dump() << std::endl;
    parsed.exit_status = 0;
    return parsed;
  }
  try {
    cli::usage::parse(app, argc, argv);
  } catch (const cli::usage::Answer& answer) {
    out << answer.what();
    parsed.exit_status = 0;
    return parsed;
  } catch (const cli::usage::ParseError& error) {
    err << "resource-agent: " << error.what() << '\n';
    parsed.exit_status = 2;
    return parsed;
  }
  if (!interval.empty()) options.agent.interval = read_interval(interval);
  if (!probe_interval.empty())
    options.agent.probe_interval = std::chrono::round<Milliseconds>(read_check_interval(probe_interval));
  if (!level.empty()) options.log_level = os::parse_level(level);
  options.check_once = health->parsed;
  check_texts.read(options);
  return parsed;
}

}  // namespace resourced::agent
