// The log of this process: lines with a level, for terminals or for journald. Only log.cpp includes the
// logging library, so that a caller compiles no more than the list of its arguments.
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

/// Reads the name of a level. Throws Error EINVAL, whose text names the levels.
[[nodiscard]] Level parse_level(const std::string& text);

/// Sends lines to standard error, each with its time, or with the priority prefix of journald if systemd
/// collects them. A caller never waits for a reader of the log: a thread writes what cannot be written at
/// once. Up to 4 MiB of unread lines are kept; lines beyond are counted and left out. The process waits at
/// its end up to a second until all lines are written. `program` names the log in its own errors.
void log_to_stderr(const std::string& program);
/// Writes lines to a stream at once. The stream must outlive the use of the log.
void log_to(const std::string& program, std::ostream& out);
/// Passes lines without time and level to `write`, also those of other threads, one at a time.
void log_to(const std::string& program, std::function<void(Level, std::string_view)> write);
/// Leaves out lines below this level.
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
  /// Further fields of the line's entry in systemd's journal.
  std::vector<JournalField> fields = {};
};

/// Returns whether standard error goes to systemd's journal (JOURNAL_STREAM).
[[nodiscard]] bool logs_to_journal();

/// Logs the line that `make` returns, as log_info() does. After log_to_stderr() the log's thread calls
/// `make`, which may ask the user database there.
void log_made(std::function<LogLine()> make);

/// Returns how many lines were left out because those before them were not read.
[[nodiscard]] std::uint64_t log_lines_dropped() noexcept;
/// Waits until all lines are written, for at most a second.
void flush_log() noexcept;

}  // namespace resourced::os
