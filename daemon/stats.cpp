#include "daemon/stats.hpp"

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace resourced::daemon {
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

std::string Stats::encode(const Gauges& gauges) const {
  nlohmann::json requests = nlohmann::json::object();
  for (const auto& [topic, outcomes] : outcomes_) {
    requests[topic] = {{"succeeded", outcomes.succeeded}, {"failed", outcomes.failed}};
  }
  const double per_commit = gauges.commits == 0 ? 0.0
                                                : static_cast<double>(gauges.committed_events) /
                                                      static_cast<double>(gauges.commits);
  const nlohmann::json stats = {
      {"requests", requests},
      {"events", gauges.events},
      {"commits", gauges.commits},
      {"events-per-commit", per_commit},
      {"clients", gauges.clients},
      {"dropped-clients", gauges.dropped_clients},
      {"subscribers", gauges.subscribers},
      {"merged-deltas", gauges.merged_deltas},
      {"journal-consumers", gauges.journal_consumers},
      {"dropped-frames", dropped_frames_},
      {"refused-connections", refused_connections_},
      {"denied-requests", denied_},
      {"limited-requests", limited_},
      {"memory", resident_memory()},
  };
  return stats.dump();
}

}  // namespace resourced::daemon
