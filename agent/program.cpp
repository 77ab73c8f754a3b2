// The agent's loop, see program.hpp. Its protocol is in agent.cpp.
#include "agent/program.hpp"

#include <cerrno>
#include <exception>
#include <memory>
#include <ostream>
#include <random>
#include <string>

#include <spdlog/sinks/ostream_sink.h>

#include "agent/agent.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "hw/probe.hpp"
#include "process/loop.hpp"
#include "process/service.hpp"

namespace resourced::agent {

namespace {

/// How long the daemon may take to answer the farewell.
constexpr Milliseconds patience{2000};

Random seeded() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  return Random(seed);
}

void serve(const Options& options, const std::string& hostname, const Agent::Probe& probe,
           std::ostream& err) {
  process::SignalLoop loop;
  const auto log =
      process::make_log("resource-agent", std::make_shared<spdlog::sinks::ostream_sink_st>(err, true));
  log->set_level(options.log_level);
  client::ConnectionOptions connection_options;
  // The daemon finds lost agents by their beats, so it needs no ZeroMQ timers for ten thousand agents.
  connection_options.heartbeat_ttl = false;
  connection_options.key_file = options.key_file;
  client::Connection connection(options.uri, connection_options);
  const auto report = [&log](Agent::Severity severity, const std::string& text) {
    process::notify_status(text);
    if (severity == Agent::Severity::info) log->info("{}", text);
    if (severity == Agent::Severity::warning) log->warn("{}", text);
    if (severity == Agent::Severity::repeated) log->debug("{}", text);
  };
  const auto logged_probe = [&](bool norestrict) {
    rset::ResourceSet resources = probe(norestrict);
    const auto counts = resources.counts();
    log->info("{} with {} cores and {} gpus", hostname, counts.cores, counts.gpus);
    return resources;
  };
  Agent agent(connection, hostname, logged_probe, options.agent, seeded(), report);
  log->info("the daemon is at {}", connection.uri());
  agent.start();
  // The daemon may be unreachable for long, which must not delay the start of this node.
  process::notify_ready();
  const process::Watchdog watchdog(loop.context());
  const auto work = [&connection] { connection.process(); };
  const auto over = [&agent] { return agent.done(); };
  loop.work_until(connection.fd(), work, over);
  process::notify_stopping();
  agent.stop(patience);
  // A second signal ends the wait.
  loop.work_until(connection.fd(), work, over);
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
    err << "resource-agent: " << json_text::printable_line(error.what()) << '\n';
    return 1;
  }
}

}  // namespace resourced::agent
