#include "os/log.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/thread.hpp"

// Leave out the position in the source, which no reader of the journal needs.
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

/// Formats the `<N>` prefix of sd-daemon(3), which journald removes from the line.
class Priority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    // Priorities by spdlog's levels: trace, debug, info, warning, error, critical, off.
    static constexpr std::array<char, 7> priorities{'7', '7', '6', '4', '3', '2', '7'};
    const std::array<char, 3> text{'<', priorities.at(static_cast<std::size_t>(message.level)), '>'};
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Priority>();
  }
};

/// A sink that calls a function.
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

std::shared_ptr<spdlog::logger> make_logger(const std::string& program, spdlog::sink_ptr sink) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  // systemd sets JOURNAL_STREAM for services whose output it collects.
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    formatter->add_flag<Priority>('*').set_pattern("%*%v");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  }
  auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
  logger->set_formatter(std::move(formatter));
  return logger;
}

void send_to_journal(const LogLine& line) {
  std::vector<std::string> entry{"MESSAGE=" + line.text, "PRIORITY=6"};
  for (const JournalField& field : line.fields) entry.push_back(field.name + "=" + field.value);
  std::vector<iovec> parts;
  parts.reserve(entry.size());
  for (std::string& part : entry) parts.push_back({part.data(), part.size()});
  if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) log_info("{}", line.text);
}

/// The queue of lines for standard error or systemd's journal, and the thread that writes them. It is never
/// destroyed: its thread may be blocked in a write when the process ends.
class Queue {
 public:
  explicit Queue(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {
    start_thread([this] { write_lines(); });
  }

  void push(Level level, std::string text) {
    const std::size_t size = text.size();
    push({std::chrono::system_clock::now(), level, std::move(text), nullptr, size});
  }
  void push(std::function<LogLine()> make) {
    constexpr std::size_t usual_size = 256;
    push({std::chrono::system_clock::now(), Level::info, {}, std::move(make), usual_size});
  }

  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  [[nodiscard]] bool is_empty() const noexcept { return unwritten_ == 0; }
  [[nodiscard]] bool is_own_thread() const noexcept { return std::this_thread::get_id() == writer_; }

 private:
  struct Entry {
    std::chrono::system_clock::time_point time;
    Level level;
    std::string text;
    /// Makes the line; empty if the line is `text`.
    std::function<LogLine()> make;
    std::size_t size;
  };
  static constexpr std::size_t most_bytes = std::size_t{4} << 20U;
  /// Bytes that an entry takes beside its text.
  static constexpr std::size_t overhead = 128;

  void push(Entry entry) {
    entry.size += overhead;
    const std::lock_guard lock(mutex_);
    if (unwritten_ == 0 && !entry.make && takes_at_once(entry)) return write(entry);
    if (bytes_ + entry.size > most_bytes) {
      ++dropped_;
      ++untold_;
      return;
    }
    tell_dropped();
    add(std::move(entry));
  }

  /// Returns whether a write cannot block: poll(2) promises that for at most PIPE_BUF bytes.
  static bool takes_at_once(const Entry& entry) {
    constexpr std::size_t time_and_level = 96;
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    return entry.text.size() + time_and_level <= PIPE_BUF && ::poll(&out, 1, 0) == 1 &&
           (out.revents & POLLOUT) != 0;
  }

  // Queues a warning with the number of lines left out since the last one. Requires the lock.
  void tell_dropped() {
    if (untold_ == 0) return;
    add({std::chrono::system_clock::now(), Level::warning,
         fmt::format("{} lines of the log are left out here, as those before them were not read in time",
                     std::exchange(untold_, 0)),
         nullptr, overhead});
  }

  // Queues an entry. Requires the lock.
  void add(Entry entry) {
    bytes_ += entry.size;
    ++unwritten_;
    entries_.push_back(std::move(entry));
    more_.notify_one();
  }

  void write_lines() {
    writer_ = std::this_thread::get_id();
    std::unique_lock lock(mutex_);
    while (true) {
      more_.wait(lock, [this] { return !entries_.empty(); });
      Entry entry = std::move(entries_.front());
      entries_.pop_front();
      lock.unlock();
      try {
        write(entry);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "a line of the log is lost: %s\n", error.what());
      }
      lock.lock();
      bytes_ -= entry.size;
      if (entries_.empty()) tell_dropped();
      --unwritten_;
    }
  }

  void write(const Entry& entry) {
    static const bool to_journal = logs_to_journal();
    const LogLine line = entry.make ? entry.make() : LogLine{entry.text};
    if (to_journal && !line.fields.empty()) return send_to_journal(line);
    logger_->log(entry.time, spdlog::source_loc{}, in_spdlog(entry.level), line.text);
  }

  std::shared_ptr<spdlog::logger> logger_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t untold_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  /// Number of lines that wait or are being written.
  std::atomic<std::uint64_t> unwritten_ = 0;
  std::atomic<std::thread::id> writer_;
};

std::atomic<Queue*> queue = nullptr;

void flush_before_abort(int /*signal*/) { flush_log(); }

void leave_queue() {
  flush_log();
  queue = nullptr;
}

}  // namespace

Level parse_level(const std::string& text) {
  // spdlog reads an unknown name as `off`.
  const auto level = spdlog::level::from_str(text);
  if (level == spdlog::level::off && text != "off") {
    throw Error(EINVAL, "expected trace, debug, info, warning, error, critical or off");
  }
  return static_cast<Level>(level);
}

void log_to_stderr(const std::string& program) {
  if (queue != nullptr) return;
  auto logger = make_logger(program, std::make_shared<spdlog::sinks::stderr_sink_st>());
  spdlog::set_default_logger(logger);
  queue = new Queue(std::move(logger));
  std::atexit([] { flush_log(); });
  // Flush at SIGABRT, as the lines before a broken invariant may tell its cause.
  std::signal(SIGABRT, flush_before_abort);
}

void log_to(const std::string& program, std::ostream& out) {
  leave_queue();
  spdlog::set_default_logger(
      make_logger(program, std::make_shared<spdlog::sinks::ostream_sink_st>(out, true)));
}

void log_to(const std::string& program, std::function<void(Level, std::string_view)> write) {
  leave_queue();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>(program, std::make_shared<Writer>(std::move(write))));
}

void set_log_level(Level least) { spdlog::set_level(in_spdlog(least)); }

// Formats the text itself, as spdlog would instantiate all of fmt. Like spdlog, it goes on after a failure.
void log(Level level, fmt::string_view format, fmt::format_args args) {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(in_spdlog(level))) return;
  try {
    std::string text = fmt::vformat(format, args);
    if (Queue* const lines = queue) return lines->push(level, std::move(text));
    logger.log(in_spdlog(level), spdlog::string_view_t(text));
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

void log_made(std::function<LogLine()> make) {
  if (!spdlog::should_log(spdlog::level::info)) return;
  if (Queue* const lines = queue) return lines->push(std::move(make));
  log_info("{}", make().text);
}

std::uint64_t log_lines_dropped() noexcept {
  const Queue* const lines = queue;
  return lines == nullptr ? 0 : lines->dropped();
}

// Polls instead of locking, as the handler of SIGABRT calls it too.
void flush_log() noexcept {
  const Queue* const lines = queue;
  if (lines == nullptr || lines->is_own_thread()) return;
  constexpr int turns = 1000;
  constexpr timespec turn{0, 1'000'000};
  for (int i = 0; i < turns && !lines->is_empty(); ++i) ::nanosleep(&turn, nullptr);
}

}  // namespace resourced::os
