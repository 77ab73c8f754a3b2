// The command line, see program.hpp.
#include <chrono>
#include <ostream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "agent/program.hpp"
#include "core/error.hpp"
#include "core/text/duration.hpp"
#include "core/text/hostlist.hpp"

namespace resourced::agent {

namespace {

/// Runs f on the value of an option. The text of an Error that it throws describes the defect of the option.
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

spdlog::level::level_enum read_level(const std::string& text) {
  // spdlog takes an unknown name for `off`.
  const auto level = spdlog::level::from_str(text);
  if (level == spdlog::level::off && text != "off") {
    throw Error(EINVAL, "expected trace, debug, info, warning, error, critical or off");
  }
  return level;
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app("Reports the hardware of this node to resourced, and keeps the node online there.",
               "resource-agent");
  std::string interval;
  std::string level;
  app.add_option("--uri", options.uri,
                 "The daemon's bus; default: $RESOURCED_URI, or the daemon of this user or host");
  app.add_option("--key", options.key_file, "The file with the keys for a tcp: bus; default: $RESOURCED_KEY")
      ->type_name("FILE");
  app.add_option("--hostname", options.hostname, "The name of this node; default: that of the host")
      ->type_name("NAME")
      ->check(check([](const std::string& text) { text::Hostlist().append(text); }), "");
  app.add_option("--interval", interval, "The time between beats, unless the daemon gives one; default: 10s")
      ->type_name("DURATION")
      ->check(check([](const std::string& text) { read_interval(text); }), "");
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
      ->check(check([](const std::string& text) { read_level(text); }), "");
  app.set_version_flag("--version", "resource-agent " RESOURCED_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    app.exit(wanted, out, err);
    parsed.exit_status = 0;
    return parsed;
  } catch (const CLI::ParseError& error) {
    err << "resource-agent: " << error.what() << '\n';
    parsed.exit_status = 2;
    return parsed;
  }
  if (!interval.empty()) options.agent.interval = read_interval(interval);
  if (!level.empty()) options.log_level = read_level(level);
  return parsed;
}

}  // namespace resourced::agent
