// The agent's loop, see program.hpp. What it does and says there is in agent.cpp.
#include "agent/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <ostream>
#include <random>
#include <string>

#include <fmt/format.h>
#include <poll.h>
#include <systemd/sd-daemon.h>

#include "agent/agent.hpp"
#include "agent/log.hpp"
#include "agent/options.hpp"
#include "agent/signals.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/json/printable.hpp"
#include "hw/node.hpp"
#include "hw/probe.hpp"

namespace resourced::agent {

namespace {

/// How long the daemon may take to answer the farewell.
constexpr Milliseconds patience{2000};

Random seeded() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  return Random(seed);
}

/// Feeds systemd's watchdog from the loop, twice as often as it asks for.
void feed_watchdog(client::Connection& connection, Milliseconds every) {
  sd_notify(0, "WATCHDOG=1");
  connection.after(every, [&connection, every] { feed_watchdog(connection, every); });
}

/// Works until it is over, or a signal comes: false in that case.
bool work_until(client::Connection& connection, const TerminationSignals& signals,
                const std::function<bool()>& over) {
  while (!over()) {
    std::array<pollfd, 2> waiting = {pollfd{connection.fd(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), -1) < 0) {
      if (errno == EINTR) continue;
      const int errnum = errno;
      throw Error(errnum, fmt::format("poll: {}", std::strerror(errnum)));
    }
    if (waiting[1].revents != 0) {
      signals.take();
      return false;
    }
    connection.process();
  }
  return true;
}

void serve(const Options& options, const std::string& hostname, const Agent::Probe& probe,
           std::ostream& err) {
  const TerminationSignals signals;
  const auto log = make_log(err, options.log_level);
  client::ConnectionOptions connection_options;
  // The daemon counts the beats; it needs no timers of ZeroMQ for ten thousand agents besides.
  connection_options.heartbeat_ttl = false;
  connection_options.key_file = options.key_file;
  client::Connection connection(options.uri, connection_options);
  const auto report = [&log](Agent::Severity severity, const std::string& text) {
    sd_notifyf(0, "STATUS=%s", text.c_str());
    if (severity == Agent::Severity::info) log->info("{}", text);
    if (severity == Agent::Severity::warning) log->warn("{}", text);
    if (severity == Agent::Severity::repeated) log->debug("{}", text);
  };
  const auto logged_probe = [&](bool norestrict) {
    ResourceSet resources = probe(norestrict);
    const auto counts = resources.counts();
    log->info("{} with {} cores and {} gpus", hostname, counts.cores, counts.gpus);
    return resources;
  };
  Agent agent(connection, hostname, logged_probe, options.agent, seeded(), report);
  log->info("the daemon is at {}", connection.uri());
  agent.start();
  // The daemon may be away for long, which must not hold up this node's start.
  sd_notify(0, "READY=1");
  std::uint64_t watchdog = 0;
  if (sd_watchdog_enabled(0, &watchdog) > 0) {
    feed_watchdog(connection, Milliseconds(std::max<std::uint64_t>(watchdog / 2000, 1)));
  }
  const auto over = [&agent] { return agent.done(); };
  work_until(connection, signals, over);
  sd_notify(0, "STOPPING=1");
  agent.stop(patience);
  // A second signal ends the wait.
  work_until(connection, signals, over);
  connection.close();
}

}  // namespace

int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  const auto [options, exit_status] = parse_options(argc, argv, out, err);
  if (exit_status) return *exit_status;
  try {
    const auto hostname = options.hostname.empty() ? hw::local_hostname() : options.hostname;
    const auto probe = [&hostname, &probed = options.probe](bool norestrict) {
      auto what = probed;
      what.norestrict = norestrict;
      return hw::node_resources(hostname, hw::probe(what));
    };
    if (!options.print) {
      serve(options, hostname, probe, err);
      return 0;
    }
    out << probe(false).encode() << '\n' << std::flush;
    if (!out) throw Error(EIO, "cannot write to standard output");
    return 0;
  } catch (const std::exception& error) {
    err << "resource-agent: " << printable_line(error.what()) << '\n';
    return 1;
  }
}

}  // namespace resourced::agent
