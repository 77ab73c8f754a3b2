// The settings as JSON, see manual.hpp.
#include "daemon/manual.hpp"

#include <cmath>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "config/config.hpp"
#include "config/setting.hpp"

namespace resourced::daemon {

namespace {

using Json = nlohmann::ordered_json;

const char* type_name(config::Type type) {
  switch (type) {
    case config::Type::boolean:
      return "true or false";
    case config::Type::integer:
      return "number";
    case config::Type::duration:
      return "duration";
    case config::Type::text:
      return "text";
    case config::Type::path:
      return "path";
    case config::Type::list:
      return "list of texts";
    case config::Type::table:
    case config::Type::entries:
      break;
  }
  return "table";
}

const char* reload_text(config::Change change) {
  switch (change) {
    case config::Change::live:
      return "takes effect with a reload";
    case config::Change::parent:
      return "takes effect with a reload, which follows the enclosing instance anew";
    case config::Change::inventory:
      return "with a reload only changed properties of targets take effect, other changes are refused";
    case config::Change::restart:
      break;
  }
  return "takes effect with a restart; a reload refuses the change";
}

Json describe_setting(const config::Setting& setting) {
  Json described = {{"key", setting.key}, {"type", type_name(setting.value.type)}};
  if (setting.value.tell != nullptr) {
    if (const auto value = setting.value.tell(config::Config{}); !value.is_null())
      described["default"] = value;
  }
  if (const auto& bounds = setting.value.bounds) {
    described["least"] = bounds->least;
    if (std::isfinite(bounds->most)) described["most"] = bounds->most;
  }
  described["reload"] = reload_text(setting.change);
  described["help"] = setting.help;
  described["example"] = setting.example;
  return described;
}

}  // namespace

Json describe_settings() {
  Json sections = Json::array();
  for (const config::Section& section : config::sections()) {
    Json settings = Json::array();
    for (const config::Setting& setting : config::settings_of(section.name)) {
      // Tables and lists of tables have sections of their own.
      const auto type = setting.value.type;
      if (type == config::Type::table || type == config::Type::entries) continue;
      settings.push_back(describe_setting(setting));
    }
    sections.push_back({{"name", section.name},
                        {"help", section.help},
                        {"sample", section.sample},
                        {"settings", std::move(settings)}});
  }
  return sections;
}

}  // namespace resourced::daemon
