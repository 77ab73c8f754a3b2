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
/// systemd collects them. Nobody waits for a reader of the log: a thread writes what cannot be written at
/// once. Of lines that are not read, 4 MiB wait; those beyond are counted and left out. The last ones are
/// written at the end of the process, which waits a second for it. `program` is for failures of the log
/// itself.
void log_to_stderr(const std::string& program);
/// Lines go to a stream at once; it must outlive the use of the log.
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

struct LogLine {
  std::string text;
  /// In systemd's journal the entry of the line has them, too.
  std::vector<JournalField> fields = {};
};

/// Whether standard error goes to systemd's journal (JOURNAL_STREAM).
[[nodiscard]] bool logs_to_journal();

/// Logs the line that `make` returns as log_info() does. With log_to_stderr() `make` is called on the thread
/// of the log, where it may ask the user database.
void log_made(std::function<LogLine()> make);

/// How many lines were left out because nobody read those before them.
[[nodiscard]] std::uint64_t log_lines_dropped() noexcept;
/// Waits until all lines are written, for a second at most.
void flush_log() noexcept;

}  // namespace resourced::os
