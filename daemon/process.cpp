#include "daemon/process.hpp"

#include <cstdlib>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include "os/log.hpp"

namespace resourced::daemon {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::size_t raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
}

void write_change(const service::ChangeLine& line) {
  std::vector<os::JournalField> fields{{"MESSAGE_ID", "fe04ea30c9034f33bd338923486ba8f7"},
                                       {"RESOURCED_EVENT", line.event}};
  if (line.by) fields.push_back({"RESOURCED_BY", service::name_of(*line.by)});
  if (!line.hosts.empty()) fields.push_back({"RESOURCED_HOSTS", line.hosts});
  if (!line.reason.empty()) fields.push_back({"RESOURCED_REASON", line.reason});
  os::log_made([line, fields = std::move(fields)] { return os::LogLine{service::text_of(line), fields}; });
}

void set_up_logging(config::LogLevel level) {
  os::log_to_stderr("resourced");
  set_log_level(level);
}

void set_log_level(config::LogLevel level) { os::set_log_level(static_cast<os::Level>(level)); }

}  // namespace resourced::daemon
