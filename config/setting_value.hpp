// Values of settings for the rows of settings.cpp, one function for each type. `Table` and `Field` say which
// field of Config holds the value: `flag<&Config::bus, &Bus::insecure>()`.
#pragma once

#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/config.hpp"
#include "config/setting.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/text/duration.hpp"

namespace resourced::config {

template <auto Table, auto Field>
using FieldType = std::remove_cvref_t<decltype(std::declval<Config&>().*Table.*Field)>;

/// Return values as they could be written. Text that is empty was not set.
inline nlohmann::json tell_text(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}
inline nlohmann::json tell_seconds(const Seconds& duration) { return text::format_duration(duration); }
inline nlohmann::json tell_milliseconds(const std::chrono::milliseconds& duration) {
  return text::format_duration(duration);
}
template <class T>
nlohmann::json tell(const T& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  } else {
    return value;
  }
}
template <class T>
nlohmann::json tell_nothing(const T& /*value*/) {
  return nullptr;
}

template <class Number>
Number read_integer(const TableReader& table, const Setting& setting) {
  const auto least = static_cast<std::int64_t>(setting.value.bounds->least);
  const auto most = static_cast<std::int64_t>(setting.value.bounds->most);
  return static_cast<Number>(*table.integer(setting.key, least, most));
}
inline bool read_flag(const TableReader& table, const Setting& setting) {
  return table.boolean(setting.key, false);
}
inline std::string read_text(const TableReader& table, const Setting& setting) {
  return *table.string(setting.key);
}
inline std::string read_filled(const TableReader& table, const Setting& setting) {
  return table.filled_string(setting.key);
}
inline std::string read_path(const TableReader& table, const Setting& setting) {
  return table.path(setting.key);
}
/// Reads a duration within the bounds of the setting.
[[nodiscard]] Seconds read_seconds(const TableReader& table, const Setting& setting);
/// Reads a duration, rounds it to milliseconds, and checks it against the bounds.
[[nodiscard]] std::chrono::milliseconds read_milliseconds(const TableReader& table, const Setting& setting);

/// Reads a value by its name; `Parse` throws Error for an unknown name.
template <auto Parse>
auto read_named(const TableReader& table, const Setting& setting) {
  const std::string& text = *table.string(setting.key);
  return table.checked(setting.key, [&] { return Parse(text); });
}
template <class T>
nlohmann::json tell_name(const T& value) {
  return std::string(to_text(value));
}

/// A setting of any type: `Read(table, setting)` is called if the key is present.
template <auto Table, auto Field, auto Read, auto Tell = tell_nothing<FieldType<Table, Field>>>
constexpr Value stored(Type type, std::optional<Bounds> bounds = std::nullopt) {
  return {type, bounds,
          [](const TableReader& table, const Setting& setting, Config& config) {
            if (table.has(setting.key)) config.*Table.*Field = Read(table, setting);
          },
          [](const Config& config) { return Tell(config.*Table.*Field); },
          [](const Config& a, const Config& b) { return a.*Table.*Field == b.*Table.*Field; }};
}

template <auto Table, auto Field>
constexpr Value flag() {
  return stored<Table, Field, read_flag, tell<bool>>(Type::boolean);
}

template <auto Table, auto Field, class Number = FieldType<Table, Field>>
constexpr Value integer(double least, double most) {
  return stored<Table, Field, read_integer<Number>, tell<FieldType<Table, Field>>>(Type::integer,
                                                                                   Bounds{least, most});
}

template <auto Table, auto Field>
constexpr Value seconds(Bounds bounds = {}) {
  return stored<Table, Field, read_seconds, tell_seconds>(Type::duration, bounds);
}

template <auto Table, auto Field>
constexpr Value milliseconds(double most) {
  return stored<Table, Field, read_milliseconds, tell_milliseconds>(Type::duration, Bounds{0.001, most});
}

/// A setting of text that may be empty, which is also the default.
template <auto Table, auto Field>
constexpr Value text() {
  return stored<Table, Field, read_text, tell<std::string>>(Type::text);
}

/// A setting of text that is not empty and has no control characters.
template <auto Table, auto Field>
constexpr Value filled_text() {
  return stored<Table, Field, read_filled, tell_text>(Type::text);
}

template <auto Table, auto Field>
constexpr Value path() {
  return stored<Table, Field, read_path, tell_text>(Type::path);
}

template <auto Table, auto Field, auto Parse>
constexpr Value named() {
  return stored<Table, Field, read_named<Parse>, tell_name<FieldType<Table, Field>>>(Type::text);
}

}  // namespace resourced::config
