// The description of a setting of the configuration, and the table of all settings: name, type, bounds,
// whether it can change while the daemon runs, how it is stored, and a help text. Reading, `config.get`, the
// plan of a reload and the sample file follow the table, so a setting is one row of it and a field of Config.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace resourced::config {

struct Config;
struct Setting;
class TableReader;

/// The effect of a reload on a setting whose value differs from the one in force.
enum class Change : std::uint8_t {
  live,       ///< it takes effect
  parent,     ///< it takes effect: the connection to the enclosing instance is made again
  inventory,  ///< changed properties of the inventory take effect, other changes are refused
  restart,    ///< the reload is refused
};

/// Whether `config.get` shows a setting that is not written, with its value in force.
enum class Shown : std::uint8_t { if_written, always };

enum class Type : std::uint8_t {
  boolean,
  integer,
  duration,  ///< RFC 23 text, or a number of seconds
  text,
  path,     ///< relative to the directory of its file
  list,     ///< an array of strings
  table,    ///< a table with a section of its own
  entries,  ///< an array of tables, with a section of its own
};

/// Bounds of an integer, or of a duration in seconds.
struct Bounds {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool excludes_least = false;
};

/// The type of a setting, and the functions that access its field. A key inside a table or an array of tables
/// has no functions: the setting that holds the table reads it.
struct Value {
  Type type = Type::text;
  std::optional<Bounds> bounds;
  /// Stores the written value; a missing key leaves the default. Throws Error EINVAL that names file, line
  /// and key.
  void (*read)(const TableReader&, const Setting&, Config&) = nullptr;
  /// Returns the value as it could be written; null if there is nothing to write. That of `Config{}` is the
  /// default.
  nlohmann::json (*tell)(const Config&) = nullptr;
  bool (*same)(const Config&, const Config&) = nullptr;
};

struct Setting {
  std::string_view section;
  std::string_view key;
  Change change;
  Shown shown;
  Value value;
  std::string_view help;     ///< sentences for an operator
  std::string_view example;  ///< TOML for the sample file; "" for the default
};

/// A table of the configuration file.
struct Section {
  /// Name of the table: `bus`; `resource.verify` and `access.rule` for a table or an array of tables in
  /// another one, `queues.NAME` for tables that the site names.
  std::string_view name;
  std::string_view help;
  /// Text of the section in the sample file, if it is more than its header and a line for each setting.
  std::string_view sample;

  [[nodiscard]] bool is_nested() const noexcept { return name.find('.') != std::string_view::npos; }
};

/// The sections, in the order of the sample file, which is also the order of reading.
[[nodiscard]] std::span<const Section> sections() noexcept;
/// The settings by section, in the order of sections().
[[nodiscard]] std::span<const Setting> settings() noexcept;
[[nodiscard]] std::span<const Setting> settings_of(std::string_view section) noexcept;

}  // namespace resourced::config
