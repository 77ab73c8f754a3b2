#include "daemon/service/stats.hpp"

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace resourced::daemon::service {
namespace {

// Resident memory in bytes, 0 where the kernel does not say.
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

std::string Stats::encode(const Gauges& gauges, const transport::LoopHolds::Longest& hold) const {
  nlohmann::json requests = nlohmann::json::object();
  for (const auto& [topic, outcomes] : outcomes_) {
    requests[topic] = {{"succeeded", outcomes.succeeded}, {"failed", outcomes.failed}};
  }
  const std::uint64_t commits = gauges.commits - cleared_.commits;
  const std::uint64_t committed_events = gauges.committed_events - cleared_.committed_events;
  const double per_commit =
      commits == 0 ? 0.0 : static_cast<double>(committed_events) / static_cast<double>(commits);
  const double milliseconds = std::chrono::duration<double, std::milli>(hold.time).count();
  const nlohmann::json stats = {
      {"requests", requests},
      {"events", gauges.events},
      {"commits", commits},
      {"events-per-commit", per_commit},
      {"clients", gauges.clients},
      {"dropped-clients", gauges.dropped_clients - cleared_.dropped_clients},
      {"subscribers", gauges.subscribers},
      {"merged-deltas", gauges.merged_deltas - cleared_.merged_deltas},
      {"journal-consumers", gauges.journal_consumers},
      {"dropped-frames", dropped_frames_},
      {"refused-connections", refused_connections_},
      {"denied-requests", denied_},
      {"limited-requests", limited_},
      {"longest-hold", {{"topic", hold.name}, {"ms", milliseconds}}},
      {"memory", resident_memory()},
  };
  return stats.dump();
}

}  // namespace resourced::daemon::service
