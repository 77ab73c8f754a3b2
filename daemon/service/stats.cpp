#include "daemon/service/stats.hpp"

#include <chrono>
#include <cstdio>
#include <memory>

#include <unistd.h>

#include "proto/topics/diagnostics.hpp"

namespace resourced::daemon::service {
namespace {

// Returns the resident memory in bytes, or 0 if the kernel does not report it.
std::uint64_t resident_memory() {
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen("/proc/self/statm", "re"));
  unsigned long total = 0;
  unsigned long resident = 0;
  if (!file || std::fscanf(file.get(), "%lu %lu", &total, &resident) != 2) return 0;
  return std::uint64_t{resident} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void Stats::clear(const Gauges& gauges) {
  *this = {};
  cleared_ = gauges;
}

std::string Stats::encode(const Gauges& gauges, const transport::LoopHolds::Longest& hold,
                          const streams::LongestWait::Wait& wait) const {
  proto::topics::StatsAnswer answer;
  for (const auto& [topic, outcomes] : outcomes_)
    answer.requests[topic] = {outcomes.succeeded, outcomes.failed};
  answer.events = gauges.events;
  answer.commits = gauges.commits - cleared_.commits;
  const std::uint64_t committed = gauges.committed_events - cleared_.committed_events;
  if (answer.commits != 0)
    answer.events_per_commit = static_cast<double>(committed) / static_cast<double>(answer.commits);
  answer.clients = gauges.clients;
  answer.dropped_clients = gauges.dropped_clients - cleared_.dropped_clients;
  answer.subscribers = gauges.subscribers;
  answer.merged_deltas = gauges.merged_deltas - cleared_.merged_deltas;
  answer.journal_consumers = gauges.journal_consumers;
  answer.dropped_frames = dropped_frames_;
  answer.refused_connections = refused_connections_;
  answer.denied_requests = denied_;
  answer.limited_requests = limited_;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  answer.longest_hold = {hold.name, Milliseconds(hold.time).count()};
  answer.longest_wait = {wait.topic, Milliseconds(wait.time).count()};
  answer.memory = resident_memory();
  return proto::topics::encode_stats(answer);
}

}  // namespace resourced::daemon::service
