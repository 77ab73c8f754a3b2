// Shifts the wall clock of a program that is started with this library in LD_PRELOAD. The file that
// $SHIFTED_CLOCK names has the shift in nanoseconds, 8 bytes in the machine's order, and may be written anew
// at any time. Other clocks are changed only with $SHIFTED_STEADY in the environment: the program then takes
// the shift for time that has passed. Its timer descriptors with relative times fire at least every 20 ms, so
// that an event loop finds what has become due; those with absolute times fire later by the shift.
// (libfaketime always changes the timers of steady clocks.)
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

constexpr std::int64_t nanoseconds = 1'000'000'000;

const std::int64_t* shift_of_file() {
  const char* const path = std::getenv("SHIFTED_CLOCK");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void* const mapped =
      file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    std::perror("SHIFTED_CLOCK");
    std::abort();
  }
  close(file);
  return static_cast<const std::int64_t*>(mapped);
}

std::int64_t shift() {
  static const std::int64_t* const mapped = shift_of_file();
  return __atomic_load_n(mapped, __ATOMIC_RELAXED);
}

std::int64_t shifted_time(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return now.tv_sec * nanoseconds + now.tv_nsec + shift();
}

std::int64_t wall_time() { return shifted_time(CLOCK_REALTIME); }

bool shifts_steady() {
  static const bool is_set = std::getenv("SHIFTED_STEADY") != nullptr;
  return is_set;
}

bool is_shifted(clockid_t clock) {
  const bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  const bool is_steady = clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
  return is_wall || (is_steady && shifts_steady());
}

}  // namespace

// The build hides names, but these must replace those of the C library.
#pragma GCC visibility push(default)
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!is_shifted(clock)) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const std::int64_t now = shifted_time(clock);
  *time = {now / nanoseconds, now % nanoseconds};
  return 0;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  constexpr std::int64_t nanoseconds_of_microsecond = 1000;
  const std::int64_t now = wall_time();
  *time = {now / nanoseconds, now % nanoseconds / nanoseconds_of_microsecond};
  return 0;
}

int timerfd_settime(int file, int flags, const itimerspec* wanted, itimerspec* former) noexcept {
  constexpr std::int64_t longest = 20'000'000;
  itimerspec setting = *wanted;
  if (shifts_steady() && (flags & TFD_TIMER_ABSTIME) == 0 &&
      (setting.it_value.tv_sec > 0 || setting.it_value.tv_nsec > longest))
    setting.it_value = {0, longest};
  return static_cast<int>(syscall(SYS_timerfd_settime, file, flags, &setting, former));
}

time_t time(time_t* seconds) noexcept {
  const time_t now = wall_time() / nanoseconds;
  if (seconds != nullptr) *seconds = now;
  return now;
}

}  // extern "C"
#pragma GCC visibility pop
