// Node agents with a beat every 10 s each: processor time and memory of the daemon, the time until all are
// up, and the time until the scheduler hears that many are lost at once. resource-agent makes a connection
// per agent; a front-end can serve many agents on one connection.
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/load/crowd.hpp"
#include "bench/measure/timing.hpp"
#include "bench/rows/rows.hpp"
#include "core/text/idset.hpp"

namespace resourced::bench {
namespace {

constexpr double beat_interval = 10;
constexpr double grace = 2;
/// Maximum number of messages to the scheduler about any number of agents.
constexpr std::size_t handful = 10;

struct AgentRun {
  /// Processor seconds in one interval of beats.
  double cpu = 0;
  /// Bytes per agent, after enough beats of each to use all of a libzmq queue.
  double memory = 0;
  /// Seconds from the first hello until the scheduler knows that all are up.
  double hello = 0;
  /// Seconds from the loss of a tenth at once until the scheduler knows it, without the grace.
  double loss = 0;
};

/// User and system time of a process from /proc/PID/stat, in seconds.
double processor_time(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // The process name may have blanks, so parse after its closing parenthesis.
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Returns the time until the scheduler knows that this many targets came up, or went down.
double time_until(BusClient& scheduler, const char* change, std::size_t targets) {
  return time_of([&] {
    std::size_t messages = 0;
    for (std::size_t changed = 0; changed < targets; ++messages) {
      const auto news = nlohmann::json::parse(scheduler.expect().payload);
      if (!news.contains(change))
        throw std::runtime_error(fmt::format("not only {}: {}", change, news.dump()));
      changed += text::IdSet::parse(news.at(change).get_ref<const std::string&>()).count();
    }
    if (messages > handful) throw std::runtime_error(fmt::format("{} messages for one change", messages));
  });
}

AgentRun run(const Bench& bench, std::size_t agents, std::size_t on_a_connection) {
  Cluster cluster(bench,
                  fmt::format("{}[limits]\nconnections-per-uid = 15000\noutstanding-requests = 2048\n"
                              "[monitor]\nmode = \"agents\"\ngrace = \"{}s\"\n",
                              equal_nodes(agents), grace),
                  [](const test::TempDir& /*dir*/) {});
  const pid_t pid = cluster.daemon().process().pid();
  BusClient scheduler(cluster.uri());
  scheduler.open("resource.acquire");
  scheduler.expect();
  AgentRun result;
  const double before = cluster.memory();
  Crowd crowd(cluster.uri(), agents, on_a_connection);
  result.hello = time_of([&] { crowd.hello(); }) + time_until(scheduler, "up", agents);

  // Number of beats that uses both chunks of a libzmq queue, which have room for 256 messages each.
  constexpr double beats = 180;
  constexpr double beats_a_second = 40'000;
  const double fast = static_cast<double>(agents) / beats_a_second;
  crowd.live(beats * fast, fast);
  result.memory = (cluster.memory() - before) / static_cast<double>(agents);

  constexpr double intervals = 1;
  const double used = processor_time(pid);
  crowd.live(intervals * beat_interval, beat_interval);
  result.cpu = (processor_time(pid) - used) / intervals;

  const std::size_t lost = agents / 10;
  crowd.lose(lost);
  result.loss = time_until(scheduler, "down", lost) - grace;
  return result;
}

/// Returns the maximum number of agent connections: a uid may use a quarter of the daemon's descriptors, of
/// which some have other uses.
std::size_t most_connections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) throw std::runtime_error("no limit of descriptors");
  constexpr std::size_t others = 16;
  return files.rlim_max / 4 - others;
}

/// Caches runs, as several rows report figures of the same run.
class Runs {
 public:
  explicit Runs(const Bench& bench) : bench_(bench) {}

  const AgentRun& with(std::size_t agents, std::size_t on_a_connection) {
    const auto known = runs_.find({agents, on_a_connection});
    if (known != runs_.end()) return known->second;
    return runs_[{agents, on_a_connection}] = run(bench_, agents, on_a_connection);
  }

 private:
  const Bench& bench_;
  std::map<std::pair<std::size_t, std::size_t>, AgentRun> runs_;
};

}  // namespace

std::vector<Row> agent_rows(const Bench& bench) {
  const auto runs = std::make_shared<Runs>(bench);
  std::vector<Row> rows;
  const auto add = [&](const char* name, Unit unit, double AgentRun::*side, double bar, double growth) {
    for (const auto& [on_a_connection, how] :
         {std::pair<std::size_t, const char*>{1, "a connection each"}, {1'000, "1,000 on a connection"}}) {
      Row row{.name = fmt::format("agents, {}: {}", how, name),
              .unit = unit,
              .of = "agents",
              .growth_bar = growth,
              .most_turns = 1};
      for (const std::size_t wanted : {1'000, 10'000}) {
        const std::size_t agents = on_a_connection == 1 ? std::min(wanted, most_connections()) : wanted;
        const auto prepare = [runs, agents, on_a_connection = on_a_connection, side]() -> Sampler {
          return [runs, agents, on_a_connection, side] { return runs->with(agents, on_a_connection).*side; };
        };
        row.points.push_back({.size = agents, .prepare = prepare, .bar = bar, .only_full = true});
      }
      rows.push_back(std::move(row));
    }
  };
  add("processor time in 10 s, a beat each", Unit::time, &AgentRun::cpu, 1, growth::linear);
  add("memory an agent", Unit::bytes, &AgentRun::memory, 8 * 1024, growth::none);
  add("from the first hello until all are up", Unit::time, &AgentRun::hello, 0, growth::none);
  add("a tenth lost at once, until they are down, beyond the grace", Unit::time, &AgentRun::loss, 1,
      growth::none);
  return rows;
}

}  // namespace resourced::bench
