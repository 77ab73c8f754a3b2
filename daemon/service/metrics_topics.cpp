#include "daemon/service/metrics_topics.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cluster/files.hpp"
#include "core/error.hpp"
#include "os/log.hpp"
#include "proto/message.hpp"
#include "proto/topics/metrics.hpp"

namespace resourced::daemon::service {
namespace {

constexpr std::string_view counter = "counter";
constexpr std::string_view gauge = "gauge";
constexpr std::string_view histogram = "histogram";

constexpr std::array<double, 11> request_bounds{0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003,
                                                0.01,    0.03,    0.1,    0.3,    1};
constexpr std::array<double, 11> commit_bounds{0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};
constexpr std::array<double, 10> batch_bounds{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};

// An answer is kept for this time: it takes the loop 0.1 ms, and with all targets some milliseconds.
constexpr Seconds lifetime{0.1};

// If a commit takes longer the disk hangs, while clients wait for answers.
constexpr Seconds longest_commit{5};

double seconds_of(const timeval& time) {
  constexpr double microseconds = 1e6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / microseconds;
}

double cpu_time() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

struct Memory {
  double total = 0;
  double resident = 0;
};

std::optional<Memory> memory() {
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen("/proc/self/statm", "re"));
  unsigned long total = 0;
  unsigned long resident = 0;
  if (!file || std::fscanf(file.get(), "%lu %lu", &total, &resident) != 2) return std::nullopt;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return Memory{static_cast<double>(total) * page, static_cast<double>(resident) * page};
}

// Returns the names of a target's states, separated by commas.
std::string state_names(std::uint8_t flags) {
  std::string text;
  for (std::size_t i = 0; i < NodeCounts::states; ++i) {
    if ((flags >> i & 1U) == 0) continue;
    if (!text.empty()) text.push_back(',');
    text.append(NodeCounts::names[i]);
  }
  return text;
}

proto::Payload payload_of(const std::string& text) {
  return proto::make_payload(proto::topics::encode_metrics(text));
}

}  // namespace

MetricsTopics::MetricsTopics(const Executor& executor, Requests& requests, const Stats& stats,
                             const Gate& gate, const JournalTopics& journal, const ClusterTopics& cluster,
                             const streams::LongestWait& waits, const Committed& committed,
                             const log::EventLog& log)
    : executor_(executor),
      requests_(requests),
      stats_(stats),
      gate_(gate),
      journal_(journal),
      cluster_(cluster),
      waits_(waits),
      committed_(committed),
      log_(log),
      started_(executor.now().wall),
      nodes_(committed, executor.engine().acquisition()),
      requests_taken_(request_bounds),
      commits_taken_(commit_bounds),
      events_of_commits_(batch_bounds) {}

void MetricsTopics::on_commit(std::size_t events, Seconds time) {
  commits_taken_.add(time);
  events_of_commits_.add(static_cast<double>(events));
}

void MetricsTopics::ready(const Call& call) {
  std::optional<std::string> standing = cluster_.standing();
  if (cluster_.role() == ClusterTopics::Role::standby)
    return requests_.respond(call, payload_of(*standing + "\n"));
  executor_.engine().require_inventory();
  if (const auto why = cluster_.stalled()) throw Error(EAGAIN, *why);
  if (const auto since = committed_.waits_since(); since && uptime() - *since > longest_commit) {
    throw Error(EIO,
                fmt::format("the store has not written an event for {:.0f} s", (uptime() - *since).count()));
  }
  requests_.respond(call, standing ? payload_of(*standing + "\n") : nullptr);
}

void MetricsTopics::metrics(const Call& call) {
  const proto::topics::MetricsRequest request = proto::topics::parse_metrics_request(call.optional_object());
  constexpr Seconds lifetime_with_nodes{1};
  Answer& answer = request.nodes ? with_nodes_ : without_nodes_;
  const SteadyTime now = uptime();
  if (!answer.payload || now - answer.since >= (request.nodes ? lifetime_with_nodes : lifetime)) {
    // Leave out metrics that a standby has from the leader: a sum over all daemons would count them twice.
    const std::string text = encode(!cluster_.follows());
    answer = {payload_of(request.nodes ? text + all_nodes() : text), now};
  }
  requests_.respond(call, answer.payload);
}

std::string MetricsTopics::encode(bool with_states) {
  MetricsText text;
  if (with_states) {
    add_nodes(text);
    add_node_times(text);
    add_schedulers(text);
  }
  add_requests(text);
  add_streams(text);
  text.begin("resourced_build_info", gauge, "The version of the daemon, as a label.");
  text.sample(1, {{"version", RESOURCED_VERSION}});
  add_cluster(text);
  add_process(text);
  return std::move(text).take();
}

void MetricsTopics::add_cluster(MetricsText& text) const {
  using Role = ClusterTopics::Role;
  text.one("resourced_cluster_epoch", gauge, "The epoch of this leader of a cluster; 0 for other daemons.",
           static_cast<double>(cluster_.term().value_or(proto::topics::Term{}).epoch));
  text.begin("resourced_cluster_role", gauge,
             "1 for what this daemon of a cluster is; a standby that etcd does not answer has no majority.");
  const Role role = cluster_.role();
  text.sample(role == Role::leader ? 1 : 0, {{"role", "leader"}});
  text.sample(role == Role::standby ? 1 : 0, {{"role", "standby"}});
  text.sample(role == Role::no_majority ? 1 : 0, {{"role", "no-majority"}});
  text.begin("resourced_cluster_files_differ", gauge,
             "1 for each group of settings in which the files of this standby differ from the leader's.");
  const std::vector<std::string> differs = cluster_.differs();
  for (const std::string_view group : ::resourced::cluster::file_groups)
    text.sample(std::ranges::count(differs, group) > 0 ? 1 : 0, {{"group", group}});
  text.one("resourced_log_events", gauge, "The last event of the log that this daemon knows.",
           static_cast<double>(committed_.last()));
  text.one("resourced_log_ahead_seconds", gauge, "How far the last event is ahead of the clock.",
           to_number(executor_.engine().ahead_of(executor_.now().wall)));
}

void MetricsTopics::add_nodes(MetricsText& text) {
  const auto& parts = nodes_.parts();
  text.begin("resourced_nodes", gauge, "Nodes of the inventory.");
  for (const NodeCounts::Part& part : parts)
    text.sample(static_cast<double>(part.all.nodes), {{"partition", part.partition}});
  const auto add = [&](std::string_view name, std::string_view help,
                       std::uint64_t NodeCounts::Counts::*field) {
    text.begin(name, gauge, help);
    for (const NodeCounts::Part& part : parts) {
      for (std::size_t i = 0; i < NodeCounts::states; ++i) {
        text.sample(static_cast<double>(part.of[i].*field),
                    {{"state", NodeCounts::names[i]}, {"partition", part.partition}});
      }
    }
  };
  add("resourced_nodes_state", "Nodes in a state; a node can be in several.", &NodeCounts::Counts::nodes);
  add("resourced_cores", "Cores of the nodes in a state; for allocated only those that are allocated.",
      &NodeCounts::Counts::cores);
  add("resourced_gpus", "GPUs of the nodes in a state; for allocated only those that are allocated.",
      &NodeCounts::Counts::gpus);
  text.begin("resourced_nodes_drained", gauge,
             "Drained and draining nodes, by the first word of the reason.");
  nodes_.drain_classes().for_each([&](std::string_view name, std::size_t nodes) {
    text.sample(static_cast<double>(nodes), {{"reason", name}});
  });
}

void MetricsTopics::add_node_times(MetricsText& text) {
  text.begin("resourced_node_transitions_total", counter, "Changes of nodes, by the name of the event.");
  for (const auto& [name, count] : nodes_.transitions())
    text.sample(static_cast<double>(count), {{"event", name}});
  text.begin("resourced_node_unavailable_seconds", histogram,
             "How long nodes were not available, of those that are again; from the start of the daemon on.");
  text.sample(nodes_.unavailable());
  text.begin("resourced_node_draining_seconds", histogram,
             "From a drain of an allocated node until nothing was allocated there.");
  text.sample(nodes_.drained_after());
}

void MetricsTopics::add_schedulers(MetricsText& text) const {
  const module::Acquisition& acquisition = executor_.engine().acquisition();
  text.begin("resourced_acquire_holders", gauge, "Schedulers that hold resources.");
  text.sample(acquisition.is_held("") ? 1 : 0, {{"partition", ""}});
  for (const module::Partition& partition : acquisition.partitions())
    text.sample(acquisition.is_held(partition.name) ? 1 : 0, {{"partition", partition.name}});
  text.one("resourced_allocations", gauge, "Allocations in the ledger.",
           static_cast<double>(committed_.state().ledger.all().size()));
  const text::IdSet& agents = executor_.engine().nodes().with_agent();
  const std::size_t torpid = (agents & committed_.state().targets.torpid).count();
  text.begin("resourced_agents", gauge, "Connected node agents; torpid ones are silent.");
  text.sample(static_cast<double>(agents.count() - torpid), {{"state", "lively"}});
  text.sample(static_cast<double>(torpid), {{"state", "torpid"}});
}

void MetricsTopics::add_requests(MetricsText& text) const {
  text.begin("resourced_requests_total", counter, "Requests that were answered.");
  stats_.for_each_topic([&](std::string_view topic, std::uint64_t succeeded, std::uint64_t failed) {
    text.sample(static_cast<double>(succeeded), {{"topic", topic}, {"outcome", "succeeded"}});
    text.sample(static_cast<double>(failed), {{"topic", topic}, {"outcome", "failed"}});
  });
  text.one("resourced_access_unknown_accounts", gauge,
           "Users and groups that access rules name and that do not exist on this machine.",
           static_cast<double>(gate_.access().unknown_accounts()));
  text.one("resourced_store_wal_bytes", gauge, "The write-ahead log of the store on disk.",
           static_cast<double>(log_.counters().log_bytes));
  text.one("resourced_log_lines_dropped_total", counter,
           "Lines of the daemon's log that were left out, as nobody read those before them.",
           static_cast<double>(os::log_lines_dropped()));
  text.begin("resourced_request_duration_seconds", histogram,
             "How long the daemon worked on a request, without the wait for the commit of its change.");
  text.sample(requests_taken_);
}

void MetricsTopics::add_streams(MetricsText& text) const {
  text.begin("resourced_commit_duration_seconds", histogram,
             "From the first event of a commit until all of it is on disk.");
  text.sample(commits_taken_);
  text.begin("resourced_batch_events", histogram, "Events of a commit.");
  text.sample(events_of_commits_);
  text.one("resourced_response_wait_longest_seconds", gauge,
           "The longest time that a response has waited for a commit, of those sent in the last one or two "
           "minutes.",
           to_number(waits_.recent(uptime())));
  text.one("resourced_journal_consumers", gauge, "Streams of the journal.",
           static_cast<double>(journal_.consumers()));
  text.one("resourced_journal_lag_events", gauge,
           "Events that the slowest stream of the journal has to get yet.",
           static_cast<double>(journal_.lag()));
}

void MetricsTopics::add_process(MetricsText& text) const {
  text.one("process_start_time_seconds", gauge, "When the daemon started, in seconds since 1970.",
           to_number(started_));
  text.one("process_cpu_seconds_total", counter, "CPU time, of the user and the system.", cpu_time());
  if (const auto now = memory()) {
    text.one("process_virtual_memory_bytes", gauge, "Virtual memory.", now->total);
    text.one("process_resident_memory_bytes", gauge, "Resident memory.", now->resident);
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    text.one("process_max_fds", gauge, "Largest number of file descriptors.",
             static_cast<double>(limit.rlim_cur));
  // The size of this directory is the number of descriptors since Linux 6.2. Listing it would take time in
  // proportion to the clients.
  struct stat status {};
  if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0)
    text.one("process_open_fds", gauge, "Open file descriptors (since Linux 6.2).",
             static_cast<double>(status.st_size));
}

std::string MetricsTopics::all_nodes() {
  MetricsText text;
  text.begin("resourced_node_info", gauge, "A node with its states, with commas between.");
  std::string lines = std::move(text).take();
  std::vector<std::string> hosts;
  committed_.state().inventory.nodelist().for_each([&](const auto& host) { hosts.emplace_back(host); });
  std::map<std::uint8_t, std::string> names;
  auto host = hosts.begin();
  // Append the text directly, as there may be many lines; names of hosts and states need no escapes.
  nodes_.for_each([&](std::string_view partition, std::uint8_t flags) {
    const auto known = names.find(flags);
    const std::string& states = known == names.end() ? names[flags] = state_names(flags) : known->second;
    lines.append("resourced_node_info{host=\"").append(*host++).append("\",partition=\"");
    MetricsText::append_value(lines, partition);
    lines.append("\",state=\"").append(states).append("\"} 1\n");
  });
  return lines;
}

}  // namespace resourced::daemon::service
