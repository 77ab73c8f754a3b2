#include "config/config.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "config/read_config.hpp"
#include "config/table_reader.hpp"
#include "config/tables.hpp"
#include "core/text/duration.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

namespace {

constexpr std::array<std::string_view, 7> log_levels{"trace", "debug",    "info", "warning",
                                                     "error", "critical", "off"};

nlohmann::json json_of(const Node& node);

struct JsonOfValue {
  nlohmann::json operator()(std::monostate) const { return nullptr; }
  nlohmann::json operator()(bool value) const { return value; }
  nlohmann::json operator()(std::int64_t value) const { return value; }
  nlohmann::json operator()(double value) const {
    // JSON has no infinity; "inf" is what the same key accepts as text.
    if (std::isinf(value)) return "inf";
    return value;
  }
  nlohmann::json operator()(const std::string& value) const { return value; }
  nlohmann::json operator()(const Array& values) const {
    nlohmann::json array = nlohmann::json::array();
    for (const Node& value : values) array.push_back(json_of(value));
    return array;
  }
  nlohmann::json operator()(const Table& members) const {
    nlohmann::json object = nlohmann::json::object();
    for (const Member& member : members) object[member.key] = json_of(member.node);
    return object;
  }
};

nlohmann::json json_of(const Node& node) { return std::visit(JsonOfValue{}, node.value); }

std::string duration_text(std::chrono::milliseconds duration) {
  return format_duration(static_cast<double>(duration.count()) / 1000);
}

}  // namespace

const std::vector<std::string>& Config::files() const {
  static const std::vector<std::string> none;
  return document ? document->files() : none;
}

std::string Config::where(std::string_view key) const {
  return document ? document->where(*document->nearest(key)) : std::string();
}

Error Config::fault(std::string_view key, std::string_view text, int errnum) const {
  return Error(errnum, place_text(where(key), key, text));
}

Config load(const std::string& path) {
  Config config;
  config.document = Document::read(path);
  check_tables(*config.document);
  config.passed_over = passed_over(*config.document);
  config.resource = read_resource(*config.document);
  config.bus = read_bus(*config.document);
  config.store = read_store(*config.document);
  read_history(config);
  config.log = read_log(*config.document);
  config.acquire = read_acquire(*config.document);
  config.access = read_access(*config.document);
  config.limits = read_limits(*config.document);
  config.monitor = read_monitor(*config.document);
  config.queues = read_queues(*config.document);
  check_discovery(config);
  return config;
}

nlohmann::json to_json(const Config& config) {
  nlohmann::json all{
      {"resource", nlohmann::json::object()},
      {"bus",
       {{"listen", config.bus.listen},
        {"send-hwm", config.bus.send_hwm},
        {"receive-hwm", config.bus.receive_hwm},
        {"heartbeat-interval", duration_text(config.bus.heartbeat_interval)},
        {"heartbeat-timeout", duration_text(config.bus.heartbeat_timeout)},
        {"max-message-size", config.bus.max_message_size}}},
      {"store", {{"history", format_duration(config.store.history)}}},
      {"log", {{"level", to_text(config.log.level)}}},
      {"limits",
       {{"outstanding-requests", config.limits.outstanding_requests},
        {"requests-per-second", config.limits.requests_per_second},
        {"connections-per-uid", config.limits.connections_per_uid},
        {"journal-consumers", config.limits.journal_consumers},
        {"handshake-timeout", duration_text(config.limits.handshake_timeout)}}},
      {"monitor",
       {{"mode", to_text(config.monitor.mode)},
        {"torpid-after", format_duration(config.monitor.torpid_after)},
        {"offline-after", format_duration(config.monitor.offline_after)},
        {"grace", format_duration(config.monitor.grace)},
        {"coalesce", format_duration(config.monitor.coalesce)},
        {"flap-count", config.monitor.flap_count},
        {"flap-window", format_duration(config.monitor.flap_window)},
        {"lost-after", format_duration(config.monitor.lost_after)}}},
  };
  if (config.document) all.merge_patch(json_of(config.document->root()));
  return all;
}

LogLevel parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < log_levels.size(); ++i) {
    if (text == log_levels[i]) return static_cast<LogLevel>(i);
  }
  throw Error(EINVAL, fmt::format("{} is not a log level: {}", quoted(text), fmt::join(log_levels, ", ")));
}

std::string_view to_text(LogLevel level) noexcept { return log_levels[static_cast<std::size_t>(level)]; }

}  // namespace resourced::config
