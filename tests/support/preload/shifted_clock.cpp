// Shifts the wall clock of a program that is started with this library in LD_PRELOAD. The file that
// $SHIFTED_CLOCK names has the shift in nanoseconds, 8 bytes in the machine's order, and may be replaced at
// any time. Other clocks are not changed. (libfaketime changes the timers of steady clocks, too.)
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

std::int64_t wall_time() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return now.tv_sec * nanoseconds + now.tv_nsec + shift();
}

}  // namespace

// The build hides names, but these must replace those of the C library.
#pragma GCC visibility push(default)
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const std::int64_t now = wall_time();
  *time = {now / nanoseconds, now % nanoseconds};
  return 0;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  constexpr std::int64_t nanoseconds_of_microsecond = 1000;
  const std::int64_t now = wall_time();
  *time = {now / nanoseconds, now % nanoseconds / nanoseconds_of_microsecond};
  return 0;
}

time_t time(time_t* seconds) noexcept {
  const time_t now = wall_time() / nanoseconds;
  if (seconds != nullptr) *seconds = now;
  return now;
}

}  // extern "C"
#pragma GCC visibility pop
