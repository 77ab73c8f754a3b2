// The loop of resource-agent, see program.hpp. The agent's protocol is in agent.cpp.
#include "agent/program.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "agent/agent.hpp"
#include "agent/check_program.hpp"
#include "agent/health_checks.hpp"
#include "agent/health_socket.hpp"
#include "agent/health_text.hpp"
#include "agent/hw/probe.hpp"
#include "agent/result_age.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "os/file.hpp"
#include "os/log.hpp"
#include "os/loop.hpp"
#include "os/service.hpp"

namespace resourced::agent {

namespace {

/// Time limit for the daemon's answer to the farewell.
constexpr Milliseconds patience{2000};

Random seeded() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  return Random(seed);
}

/// Returns the kernel's id of this boot; empty where it is hidden, as in some sandboxes.
std::string read_boot_id() {
  constexpr std::size_t most = 64;
  try {
    std::string id = os::read_file("/proc/sys/kernel/random/boot_id", most);
    id.erase(std::min(id.find('\n'), id.size()));
    return id;
  } catch (const Error&) {
    return "";
  }
}

/// Source of health results: checks that the agent runs, its socket, or none.
struct HealthSource {
  std::optional<HealthChecks> checks;
  std::optional<ResultAge> age;
  std::optional<HealthSocket> socket;

  void start(const Options& options, boost::asio::io_context& loop, const ReportHealth& report) {
    if (!options.check.program.empty()) {
      checks.emplace(loop, options.check, options.check_interval, report);
    } else if (!options.health_socket.empty()) {
      if (options.health_max_age > Seconds(0)) {
        age.emplace(loop, options.health_max_age, report, [this] { socket->take_waiting(); });
      }
      const auto take = [this, report](const nodes::HealthReport& result) {
        age ? age->take(result) : report(result);
      };
      socket.emplace(
          loop, options.health_socket, take,
          [](const std::string& line) { os::log_warning("{}", json_text::printable_line(line)); },
          [] { return SteadyTime(std::chrono::steady_clock::now().time_since_epoch()); });
    }
  }
};

void write_report(int descriptor, const nodes::HealthReport& report) {
  const std::string text = write_health_text(report);
  // EPIPE means that the agent is gone, so the result is not needed.
  if (::write(descriptor, text.data(), text.size()) < 0 && errno != EPIPE)
    throw Error(errno, std::generic_category().message(errno));
}

/// Runs one health check. Returns the exit status: 1 if the check was interrupted.
int check_once(const Options& options) {
  const int pipe = options.report_descriptor;
  if (pipe >= 0 && ::fcntl(pipe, F_SETFD, FD_CLOEXEC) != 0)
    throw Error(errno, fmt::format("descriptor {}: {}", pipe, std::generic_category().message(errno)));
  const auto report = [&](const nodes::HealthReport& result) {
    if (pipe >= 0) return write_report(pipe, result);
    send_health(options.health_socket, result);
  };
  return run_check(options.check, report, pipe) ? 0 : 1;
}

void serve(const Options& options, const Agent::Name& name, const Agent::Probe& probe, std::ostream& err) {
  os::SignalLoop loop;
  if (&err == &std::cerr) {
    os::log_to_stderr("resource-agent");
  } else {
    os::log_to("resource-agent", err);
  }
  os::set_log_level(options.log_level);
  client::ConnectionOptions connection_options;
  // The daemon detects lost agents by their beats, so it needs no ZeroMQ timers for ten thousand agents.
  connection_options.heartbeat_ttl = false;
  // Longer pauses than by default: thousands of agents ask each daemon of a cluster while none leads.
  connection_options.retry_most = std::chrono::seconds(5);
  connection_options.key_file = options.key_file;
  // With several URIs heartbeats are frequent by default. Agents can send fewer, as a node stays online for
  // longer than that without its agent, and there are thousands of them.
  if (client::Connection(options.uri, connection_options).has_places()) {
    connection_options.heartbeat_interval = std::chrono::seconds(2);
    connection_options.heartbeat_timeout = std::chrono::seconds(6);
  }
  client::Connection connection(options.uri, connection_options);
  const auto report = [](Agent::Severity severity, const std::string& text) {
    os::notify_status(text);
    if (severity == Agent::Severity::info) os::log_info("{}", text);
    if (severity == Agent::Severity::warning) os::log_warning("{}", text);
    if (severity == Agent::Severity::repeated) os::log_debug("{}", text);
  };
  std::string last_line;
  const auto logged_probe = [&](const std::string& hostname, bool norestrict) {
    rset::ResourceSet resources = probe(hostname, norestrict);
    const auto counts = resources.counts();
    std::string line =
        fmt::format("the hardware of {}: {} cores and {} gpus", hostname, counts.cores, counts.gpus);
    if (line != last_line) os::log_info("{}", line);
    last_line = std::move(line);
    return resources;
  };
  AgentOptions agent_options = options.agent;
  agent_options.boot_id = read_boot_id();
  Agent agent(connection, name, logged_probe, std::move(agent_options), seeded(), report);
  os::log_info("connecting to the daemon at {}", connection.uri());
  agent.start();
  HealthSource health;
  health.start(options, loop.context(), [&agent](const auto& result) { agent.on_health(result); });
  // The daemon may be unreachable for long, which must not delay the start of this node.
  os::notify_ready();
  const os::Watchdog watchdog(loop.context());
  const auto work = [&connection] { connection.process(); };
  const auto over = [&agent] { return agent.done(); };
  loop.work_until(connection.fd(), work, over);
  os::notify_stopping();
  agent.stop(patience);
  // A second signal ends this wait.
  loop.work_until(connection.fd(), work, over);
  connection.close();
}

}  // namespace

int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  const auto [options, exit_status] = parse_options(argc, argv, out, err);
  if (exit_status) return *exit_status;
  try {
    if (options.check_once) return check_once(options);
    const auto name = [&given = options.hostname] { return given.empty() ? hw::local_hostname() : given; };
    const auto probe = [&probed = options.probe](const std::string& hostname, bool norestrict) {
      auto what = probed;
      what.norestrict = norestrict;
      return hw::node_resources(hostname, hw::probe(what));
    };
    if (!options.print) {
      serve(options, name, probe, err);
      return 0;
    }
    out << probe(name(), false).encode() << '\n' << std::flush;
    if (!out) throw Error(EIO, "cannot write to standard output");
    return 0;
  } catch (const std::exception& error) {
    err << "resource-agent: " << json_text::printable_line(error.what()) << '\n';
    return 1;
  }
}

}  // namespace resourced::agent
