#include "agent/health_checks.hpp"

#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/health_text.hpp"
#include "core/error.hpp"
#include "os/file.hpp"
#include "os/loop.hpp"

namespace resourced::agent {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;
using os::Descriptor;

namespace {

constexpr int report_descriptor = 3;
/// Names the running program even after its file was replaced, as by an upgrade.
constexpr const char* this_program = "/proc/self/exe";

void check_call(int number, std::string_view call) {
  if (number != 0) throw Error(number, fmt::format("{}: {}", call, std::generic_category().message(number)));
}

/// The attributes and file actions of a process that has a pipe as its report_descriptor, and a session of
/// its own: signals of a terminal are for the agent.
class SpawnSettings {
 public:
  explicit SpawnSettings(int report) {
    check_call(::posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    check_call(::posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init");
    sigset_t none;
    sigemptyset(&none);
    check_call(::posix_spawnattr_setsigmask(&attributes_, &none), "posix_spawnattr_setsigmask");
    check_call(::posix_spawnattr_setflags(&attributes_,
                                          static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID)),
               "posix_spawnattr_setflags");
    check_call(::posix_spawn_file_actions_adddup2(&actions_, report, report_descriptor),
               "posix_spawn_file_actions_adddup2");
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  SpawnSettings(SpawnSettings&&) = delete;
  SpawnSettings& operator=(SpawnSettings&&) = delete;

  [[nodiscard]] const posix_spawnattr_t* attributes() const noexcept { return &attributes_; }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const noexcept { return &actions_; }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

HealthChecks::HealthChecks(boost::asio::io_context& loop, const CheckCommand& check, Seconds interval,
                           ReportHealth report)
    : arguments_{"resource-agent", "health", fmt::format("--program={}", check.program),
                 fmt::format("--timeout={}s", check.timeout.count()),
                 fmt::format("--report-fd={}", report_descriptor)},
      interval_(interval),
      report_(std::move(report)),
      timer_(loop),
      pipe_(loop),
      process_(loop) {
  start();
}

void HealthChecks::start() {
  started_ = std::chrono::steady_clock::now();
  has_reported_ = false;
  text_.clear();
  try {
    spawn();
  } catch (const Error& error) {
    report_({1, fmt::format("health check cannot be started: {}", error.what())});
    return start_later();
  }
  read();
}

void HealthChecks::spawn() {
  std::array<int, 2> ends{};
  check_call(::pipe2(ends.data(), O_CLOEXEC) == 0 ? 0 : errno, "pipe");
  Descriptor reader(ends[0]);
  const Descriptor writer(ends[1]);
  const SpawnSettings settings(writer.get());
  std::vector<char*> arguments;
  for (std::string& word : arguments_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  check_call(::posix_spawn(&process_id_, this_program, settings.actions(), settings.attributes(),
                           arguments.data(), environ),
             this_program);
  // The header for pidfd_open() of glibc 2.36 lacks its C linkage.
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, process_id_, 0U));
  if (process < 0) {
    const int number = errno;
    ::kill(process_id_, SIGKILL);
    ::waitpid(process_id_, nullptr, 0);
    check_call(number, "pidfd_open");
  }
  process_.assign(process);
  pipe_.assign(reader.release());
}

void HealthChecks::read() {
  pipe_.async_read_some(boost::asio::buffer(buffer_), [this](error_code error, std::size_t size) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) {
      pipe_.close();
      return wait_for_end();
    }
    take({buffer_.data(), size});
    read();
  });
}

void HealthChecks::take(std::string_view text) {
  if (has_reported_ || text_.size() > max_health_text) return;
  text_ += text;
  if (!text_.ends_with('\n')) return;
  has_reported_ = true;
  try {
    report_(read_health_text(text_));
  } catch (const Error& error) {
    report_({1, fmt::format("health check: {}", error.what())});
  }
}

void HealthChecks::wait_for_end() {
  process_.async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (error != boost::asio::error::operation_aborted) on_end();
  });
}

void HealthChecks::on_end() {
  process_.close();
  int status = 0;
  ::waitpid(std::exchange(process_id_, -1), &status, 0);
  if (!has_reported_) {
    report_({1, WIFSIGNALED(status)
                    ? fmt::format("the process of the health check was ended by signal {}", WTERMSIG(status))
                    : fmt::format("the process of the health check ended without a result, status {}",
                                  WEXITSTATUS(status))});
  }
  start_later();
}

void HealthChecks::start_later() {
  timer_.expires_at(started_ + os::timer_duration(interval_));
  timer_.async_wait([this](error_code error) {
    if (!error) start();
  });
}

}  // namespace resourced::agent
