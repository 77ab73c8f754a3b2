// Holds the writes to disk of a program that is started with this library in LD_PRELOAD, while the file that
// $HELD_DISK names exists.
#include <cstdlib>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

void wait_for_disk() {
  const char* const path = std::getenv("HELD_DISK");
  constexpr useconds_t pause = 1000;
  while (path != nullptr && access(path, F_OK) == 0) usleep(pause);
}

}  // namespace

// The build hides names, but these must replace those of the C library.
#pragma GCC visibility push(default)
extern "C" {

int fsync(int file) {
  wait_for_disk();
  return static_cast<int>(syscall(SYS_fsync, file));
}

int fdatasync(int file) {
  wait_for_disk();
  return static_cast<int>(syscall(SYS_fdatasync, file));
}
}
#pragma GCC visibility pop
