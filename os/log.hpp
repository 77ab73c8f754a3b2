// The log of this process: lines with a level, for terminals or for journald. Only log.cpp includes the
// library for it, so that a caller compiles no more than the list of its arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace resourced::os {

enum class Level : std::uint8_t { trace, debug, info, warning, error, critical, off };

/// EINVAL names the levels.
[[nodiscard]] Level parse_level(const std::string& text);

/// From here on lines go to standard error, each with its time, or with the priority prefix of journald if
/// systemd collects them. `program` is for failures of the log itself.
void log_to_stderr(const std::string& program);
/// The same to a stream, which must outlive the use of the log.
void log_to(const std::string& program, std::ostream& out);
/// Lines without time and level go to `write`, also those of other threads, one at a time.
void log_to(const std::string& program, std::function<void(Level, std::string_view)> write);
/// Lines below this level are left out.
void set_log_level(Level least);

void log(Level level, fmt::string_view format, fmt::format_args args);

template <class... Args>
void log_debug(fmt::format_string<Args...> format, const Args&... args) {
  log(Level::debug, format, fmt::make_format_args(args...));
}

template <class... Args>
void log_info(fmt::format_string<Args...> format, const Args&... args) {
  log(Level::info, format, fmt::make_format_args(args...));
}

template <class... Args>
void log_warning(fmt::format_string<Args...> format, const Args&... args) {
  log(Level::warning, format, fmt::make_format_args(args...));
}

template <class... Args>
void log_error(fmt::format_string<Args...> format, const Args&... args) {
  log(Level::error, format, fmt::make_format_args(args...));
}

template <class... Args>
void log_critical(fmt::format_string<Args...> format, const Args&... args) {
  log(Level::critical, format, fmt::make_format_args(args...));
}

/// A field of systemd's journal. The name has capital letters, digits and underscores.
struct JournalField {
  std::string name;
  std::string value;
};

/// Whether standard error goes to systemd's journal (JOURNAL_STREAM).
[[nodiscard]] bool logs_to_journal();

/// Logs a line as log_info() does. In systemd's journal its entry has the fields, too.
void log_with_fields(const std::string& message, const std::vector<JournalField>& fields);

}  // namespace resourced::os
