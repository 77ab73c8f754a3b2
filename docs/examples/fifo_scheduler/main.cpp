// fifo_scheduler: acquires resources from resourced (RFC 28) and allocates them to requests, one per line of
// input. This file has the event loop; scheduler.hpp has the decisions, pool.hpp the state.
// docs/schedulers.md explains the program.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/signalfd.h>

#include "cli/usage/parser.hpp"
#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "docs/examples/fifo_scheduler/line_input.hpp"
#include "docs/examples/fifo_scheduler/scheduler.hpp"

namespace {

using namespace resourced;

/// After how long a refused request is tried again.
constexpr client::Milliseconds retry_pause{1000};

struct Options {
  std::string uri;
  std::string file;
  std::string partition;
  bool wait = false;
  bool exit_at_eof = false;
  bool no_ledger = false;
};

[[noreturn]] void fail(const char* what) {
  const int errnum = errno;
  throw Error(errnum, fmt::format("{}: {}", what, std::strerror(errnum)));
}

/// Prints one line of JSON and flushes it, since a reader may wait for it.
void print(std::string_view object) {
  const std::string line = json_text::printable(object) + '\n';
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0)
    fail("standard output");
}

WallTime now() { return WallTime(std::chrono::system_clock::now().time_since_epoch()); }

/// Returns a descriptor that becomes readable on SIGINT or SIGTERM.
int watch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int fd = signalfd(-1, &signals, SFD_CLOEXEC);
  if (fd < 0) fail("signalfd");
  return fd;
}

void run(const Options& options) {
  const int signals = watch_signals();
  fifo::LineInput input(options.file);
  client::Connection connection(options.uri);
  fifo::Scheduler scheduler(print, now, options.partition);
  client::AcquisitionOptions acquire;
  acquire.ledger = !options.no_ledger;
  acquire.scheduled = acquire.cause = true;
  acquire.wait = options.wait;
  acquire.partition = options.partition;
  client::Acquisition acquisition(connection, scheduler, acquire);
  if (acquire.ledger) scheduler.record_in(acquisition.ledger());

  using std::chrono::steady_clock;
  auto refused_since = steady_clock::now();
  while (!scheduler.error()) {
    // Read no requests before the resources are acquired.
    const bool waiting = acquisition.state() == client::Acquisition::State::waiting;
    std::array<pollfd, 3> ready = {pollfd{connection.fd(), POLLIN, 0}, pollfd{signals, POLLIN, 0},
                                   pollfd{waiting ? -1 : input.fd(), POLLIN, 0}};
    if (!scheduler.is_refused()) refused_since = steady_clock::now();
    const auto left = ceil<client::Milliseconds>(refused_since + retry_pause - steady_clock::now());
    const int most = scheduler.is_refused() ? std::max(static_cast<int>(left.count()), 0) : -1;
    if (poll(ready.data(), ready.size(), most) < 0 && errno != EINTR) fail("poll");
    if (scheduler.is_refused() && steady_clock::now() - refused_since >= retry_pause) scheduler.retry();
    if (ready[1].revents != 0) break;

    connection.process();
    scheduler.schedule();
    if (ready[2].revents != 0)
      for (const std::string& line : input.read()) scheduler.command(line);
    if (input.ended() && options.exit_at_eof && !scheduler.is_waiting_for_ledger()) break;
  }
  acquisition.close();
  connection.close();
  if (scheduler.error()) throw Error(*scheduler.error());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  resourced::cli::usage::Command app(
      "Allocates resources to requests, first come, first served.\n\n"
      "A request is a line: a shape (RFC 46) such as slot=2/core=4, with `where QUERY` (RFC 35) behind it "
      "to\n"
      "select targets; a jobspec as JSON; `free ID`; or `prolong ID SECONDS`. The answers are printed as\n"
      "JSON Lines.",
      "fifo_scheduler");
  app.add_option("--uri", options.uri,
                 "The daemon's bus; default: $RESOURCED_URI, or the daemon of this user or host")
      ->type_name("URI");
  app.add_option("--file", options.file, "Read requests from here instead of standard input")
      ->type_name("FILE");
  app.add_option("--partition", options.partition, "The partition to acquire")->type_name("NAME");
  app.add_flag("--wait", options.wait, "Wait while another scheduler has the resources");
  app.add_flag("--no-ledger", options.no_ledger,
               "Keep allocations in memory only, for a daemon without a ledger");
  app.add_flag("--exit-at-eof", options.exit_at_eof,
               "End when the input ends, and drop waiting requests; default: run until SIGINT or SIGTERM");
  app.set_version_flag("--version", "fifo_scheduler " RESOURCED_VERSION);
  if (const auto status = resourced::cli::usage::parse_or_print(app, argc, argv)) return *status == 0 ? 0 : 2;
  try {
    run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fifo_scheduler: %s\n", json_text::printable_line(error.what()).c_str());
    return 1;
  }
}
