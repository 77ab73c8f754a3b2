#include "config/config.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "config/faults.hpp"
#include "config/read_config.hpp"
#include "config/setting.hpp"
#include "config/table_reader.hpp"
#include "config/tables.hpp"
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
    // JSON has no infinity; the key also accepts "inf" as text.
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

void read_section(const Document& document, const Section& section, Config& config, FaultList& faults) {
  const Node* node = find_member(*document.root().table(), section.name);
  if (node == nullptr) return;
  const KeyPath path{nullptr, section.name};
  const std::span<const Setting> rows = settings_of(section.name);
  faults.attempt([&] {
    const TableReader table(document, *node, path);
    faults.attempt([&] { table.check_keys(rows, flux_keys(section.name)); });
    for (const Setting& setting : rows) faults.attempt([&] { setting.value.read(table, setting, config); });
  });
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
  FaultList faults;
  faults.attempt([&] { check_tables(*config.document); });
  config.passed_over = passed_over(*config.document);
  for (const Section& section : sections()) {
    if (!section.is_nested()) read_section(*config.document, section, config, faults);
  }
  faults.attempt([&] { config.queues = read_queues(*config.document); });
  faults.check();
  settle(config);
  return config;
}

nlohmann::json to_json(const Config& config) {
  nlohmann::json all{{"resource", nlohmann::json::object()}};
  for (const Setting& setting : settings()) {
    if (setting.shown == Shown::always)
      all[std::string(setting.section)][std::string(setting.key)] = setting.value.tell(config);
  }
  if (config.document) all.merge_patch(json_of(config.document->root()));
  return all;
}

LogLevel parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < log_levels.size(); ++i) {
    if (text == log_levels[i]) return static_cast<LogLevel>(i);
  }
  throw Error(EINVAL,
              fmt::format("{} is not a log level: {}", text::quoted(text), fmt::join(log_levels, ", ")));
}

std::string_view to_text(LogLevel level) noexcept { return log_levels[static_cast<std::size_t>(level)]; }

MonitorMode parse_monitor_mode(std::string_view text) {
  for (const MonitorMode mode : {MonitorMode::fixed, MonitorMode::agents}) {
    if (text == to_text(mode)) return mode;
  }
  throw Error(EINVAL, fmt::format("{} is neither static nor agents", text::quoted(text)));
}

std::string_view to_text(MonitorMode mode) noexcept {
  return mode == MonitorMode::agents ? "agents" : "static";
}

HealthReturn parse_health_return(std::string_view text) {
  for (const auto on_return : {HealthReturn::manual, HealthReturn::automatic}) {
    if (text == to_text(on_return)) return on_return;
  }
  throw Error(EINVAL, fmt::format("{} is neither manual nor auto", text::quoted(text)));
}

std::string_view to_text(HealthReturn on_return) noexcept {
  return on_return == HealthReturn::automatic ? "auto" : "manual";
}

}  // namespace resourced::config
