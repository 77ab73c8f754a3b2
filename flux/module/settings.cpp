#include "flux/module/settings.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/rset/builder.hpp"
#include "core/rset/operations.hpp"
#include "core/text/duration.hpp"
#include "core/text/quote.hpp"
#include "os/file.hpp"

namespace resourced::flux::module {

using rset::ResourceSet;
using rset::VerifyMode;
using rset::VerifyOptions;

namespace {

using nlohmann::json;

constexpr std::size_t most_scheduling = std::size_t{256} << 20U;
constexpr std::size_t most_depth = 128;

[[noreturn]] void refuse(const std::string& text) { throw Error(EINVAL, text); }

[[noreturn]] void refuse_table(std::string_view text) {
  refuse(fmt::format("error parsing [resource] configuration: {}", text));
}

/// Returns the value of a key, which must have this type; nothing if the key is missing.
const json* find(const json& table, const char* key, bool (json::*is_type)() const noexcept,
                 const char* type) {
  const auto found = table.find(key);
  if (found == table.end()) return nullptr;
  if (!(*found.*is_type)())
    refuse_table(fmt::format("Expected {}, got {}: {}", type, found->type_name(), key));
  return &*found;
}

std::string text_of(const json& table, const char* key) {
  const json* value = find(table, key, &json::is_string, "string");
  return value == nullptr ? std::string() : value->get<std::string>();
}

bool truth_of(const json& table, const char* key) {
  const json* value = find(table, key, &json::is_boolean, "true or false");
  return value != nullptr && value->get<bool>();
}

ResourceSet read_entries(const json& entries) {
  try {
    rset::InventoryBuilder builder;
    if (entries.empty()) throw Error(EINVAL, "no hosts configured");
    for (const json& entry : entries) {
      if (!entry.is_object()) throw Error(EINVAL, "an entry is not a table");
      constexpr std::array<std::string_view, 4> keys = {"hosts", "cores", "gpus", "properties"};
      for (const auto& [key, value] : entry.items()) {
        if (std::ranges::find(keys, key) == keys.end())
          throw Error(EINVAL, fmt::format("unknown key {}", text::quoted(key)));
      }
      const auto idset = [&](const char* key) {
        return entry.contains(key) ? text::IdSet::parse(entry.at(key).get<std::string>()) : text::IdSet();
      };
      builder.add(text::Hostlist::parse(entry.at("hosts").get<std::string>()), idset("cores"), idset("gpus"),
                  entry.value("properties", std::vector<std::string>()));
    }
    return builder.finish();
  } catch (const json::exception& error) {
    refuse(fmt::format("error parsing [resource.config] array: {}", error.what()));
  } catch (const Error& error) {
    refuse(fmt::format("error parsing [resource.config] array: {}", error.what()));
  }
}

/// Returns Flux's error text for an R of another version; nothing for any other text.
std::optional<std::string> wrong_version(const std::string& text) {
  const auto read = read_json(text, most_depth, json_text::JsonManners::lenient);
  const auto* document = std::get_if<json>(&read);
  if (document == nullptr || !document->is_object()) return std::nullopt;
  const auto version = document->find("version");
  if (version == document->end() || !version->is_number_integer() || *version == 1) return std::nullopt;
  return fmt::format("invalid version={}", version->get<std::int64_t>());
}

ResourceSet read_resources(const std::string& path) {
  std::string text;
  try {
    text = os::read_file(path, ResourceSet::max_text);
  } catch (const Error& error) {
    refuse(fmt::format("{}: unable to open {}", path, error.what()));
  }
  try {
    return ResourceSet::parse(text);
  } catch (const Error& error) {
    refuse(fmt::format("error parsing R: {}", wrong_version(text).value_or(error.what())));
  }
}

void set_scheduling(ResourceSet& resources, const std::string& path) {
  std::string text;
  try {
    text = os::read_file(path, most_scheduling);
  } catch (const Error& error) {
    refuse(fmt::format("error loading resource.scheduling: {}", error.what()));
  }
  try {
    resources.set_scheduling(text);
  } catch (const Error& error) {
    refuse(fmt::format("error loading resource.scheduling: {}: {}", path, error.what()));
  }
}

VerifyOptions read_verify(const json& value) {
  if (value.is_boolean())
    return VerifyOptions::all(value.get<bool>() ? VerifyMode::strict : VerifyMode::ignore);
  if (!value.is_object()) refuse("verify must be a table or boolean");
  const auto mode = [&](const char* key, VerifyMode otherwise) {
    const auto found = value.find(key);
    if (found == value.end()) return otherwise;
    if (!found->is_string()) refuse(fmt::format("verify.{} mode must be a string", key));
    try {
      return rset::parse_verify_mode(found->get<std::string>());
    } catch (const Error&) {
      refuse(fmt::format("verify.{}: unknown verify mode '{}'", key, found->get<std::string>()));
    }
  };
  const VerifyMode otherwise = mode("default", VerifyMode::strict);
  const VerifyOptions options{mode("core", otherwise), mode("gpu", otherwise), mode("hostname", otherwise)};
  for (const auto& [key, mode_text] : value.items()) {
    constexpr std::array<std::string_view, 4> keys = {"default", "core", "gpu", "hostname"};
    if (std::ranges::find(keys, key) == keys.end()) {
      refuse(fmt::format("verify: unsupported resource type: {}", key));
    }
  }
  return options;
}

}  // namespace

Settings read_settings(const json& configuration, std::uint32_t rank, const text::Hostlist& hosts) {
  Settings settings;
  if (const auto systemd = configuration.find("systemd");
      systemd != configuration.end() && systemd->is_object()) {
    settings.systemd = systemd->value("enable", false);
  }
  const auto found = configuration.find("resource");
  if (found == configuration.end()) return settings;
  const json& table = *found;
  if (!table.is_object()) refuse_table(fmt::format("Expected object, got {}", table.type_name()));
  constexpr std::array<std::string_view, 11> keys = {
      "path",     "scheduling", "config",      "verify",  "exclude",        "norestrict",
      "noverify", "rediscover", "journal-max", "history", "no-update-watch"};
  for (const auto& [key, value] : table.items()) {
    if (std::ranges::find(keys, key) == keys.end()) refuse_table(fmt::format("unknown key {}", key));
  }
  settings.exclude = text_of(table, "exclude");
  settings.norestrict = truth_of(table, "norestrict");
  settings.noverify = truth_of(table, "noverify");
  settings.rediscover = truth_of(table, "rediscover");
  settings.no_update_watch = truth_of(table, "no-update-watch");
  if (const json* value = find(table, "journal-max", &json::is_number_integer, "integer")) {
    settings.journal_max = static_cast<std::uint64_t>(std::max<std::int64_t>(1, value->get<std::int64_t>()));
  }
  if (const std::string history = text_of(table, "history"); !history.empty()) {
    try {
      settings.history = text::parse_duration(history);
    } catch (const Error& error) {
      refuse_table(error.what());
    }
  }
  if (const auto verify = table.find("verify"); verify != table.end()) {
    settings.verify = read_verify(*verify);
    settings.is_verify_set = true;
  }
  if (const json* entries = find(table, "config", &json::is_array, "array")) {
    settings.resources = read_entries(*entries);
  } else if (const std::string path = text_of(table, "path"); !path.empty()) {
    settings.resources = read_resources(path);
  }
  if (const std::string path = text_of(table, "scheduling"); !path.empty() && rank == 0) {
    if (!settings.resources) refuse("resource.scheduling requires resource.path or [resource.config]");
    set_scheduling(*settings.resources, path);
  }
  if (settings.resources && configuration.contains("bootstrap")) {
    try {
      settings.resources = rerank(*settings.resources, hosts);
    } catch (const Error& error) {
      refuse(fmt::format("error reranking R: {}", error.what()));
    }
  }
  return settings;
}

}  // namespace resourced::flux::module
