#include "os/log.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/error.hpp"

// Without the place in the source, which no reader of the journal needs.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

namespace resourced::os {

namespace {

static_assert(static_cast<int>(Level::trace) == spdlog::level::trace);
static_assert(static_cast<int>(Level::warning) == spdlog::level::warn);
static_assert(static_cast<int>(Level::off) == spdlog::level::off);

spdlog::level::level_enum in_spdlog(Level level) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(level));
}

/// The `<N>` prefix of sd-daemon(3), which journald removes from the line.
class Priority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    // By spdlog's levels: trace, debug, info, warning, error, critical, off.
    static constexpr std::array<char, 7> priorities{'7', '7', '6', '4', '3', '2', '7'};
    const std::array<char, 3> text{'<', priorities.at(static_cast<std::size_t>(message.level)), '>'};
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Priority>();
  }
};

/// A function as a sink.
class Writer final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit Writer(std::function<void(Level, std::string_view)> write) : write_(std::move(write)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    write_(static_cast<Level>(line.level), std::string_view(line.payload.data(), line.payload.size()));
  }
  void flush_() override {}

 private:
  std::function<void(Level, std::string_view)> write_;
};

void log_lines_to(const std::string& program, spdlog::sink_ptr sink) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  // systemd sets JOURNAL_STREAM for services whose output it collects.
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    formatter->add_flag<Priority>('*').set_pattern("%*%v");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  }
  auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace

Level parse_level(const std::string& text) {
  // spdlog takes an unknown name for `off`.
  const auto level = spdlog::level::from_str(text);
  if (level == spdlog::level::off && text != "off") {
    throw Error(EINVAL, "expected trace, debug, info, warning, error, critical or off");
  }
  return static_cast<Level>(level);
}

void log_to_stderr(const std::string& program) {
  log_lines_to(program, std::make_shared<spdlog::sinks::stderr_sink_st>());
}

void log_to(const std::string& program, std::ostream& out) {
  log_lines_to(program, std::make_shared<spdlog::sinks::ostream_sink_st>(out, true));
}

void log_to(const std::string& program, std::function<void(Level, std::string_view)> write) {
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>(program, std::make_shared<Writer>(std::move(write))));
}

void set_log_level(Level least) { spdlog::set_level(in_spdlog(least)); }

// Formatted here, as spdlog instantiates all of fmt for it. Like spdlog, goes on if that fails.
void log(Level level, fmt::string_view format, fmt::format_args args) {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(in_spdlog(level))) return;
  try {
    logger.log(in_spdlog(level), spdlog::string_view_t(fmt::vformat(format, args)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a line of the log is lost: %s\n", error.what());
  }
}

bool logs_to_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return stream == std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

void log_with_fields(const std::string& message, const std::vector<JournalField>& fields) {
  if (!spdlog::should_log(spdlog::level::info)) return;
  static const bool to_journal = logs_to_journal();
  if (!to_journal) return log_info("{}", message);
  std::vector<std::string> entry{"MESSAGE=" + message, "PRIORITY=6"};
  for (const JournalField& field : fields) entry.push_back(field.name + "=" + field.value);
  std::vector<iovec> parts;
  parts.reserve(entry.size());
  for (std::string& part : entry) parts.push_back({part.data(), part.size()});
  if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) log_info("{}", message);
}

}  // namespace resourced::os
