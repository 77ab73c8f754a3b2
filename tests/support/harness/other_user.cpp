#include "harness/other_user.hpp"

#include <cstdlib>

#include <sys/syscall.h>
#include <unistd.h>

#include "skipped.hpp"

namespace resourced::e2e {
namespace {

constexpr std::uint32_t same = 0xFFFFFFFF;

// Uses system calls directly: the kernel keeps credentials for each thread, but the C library would change
// those of all threads.
void become(std::uint32_t uid, std::uint32_t gid) {
  const bool to_root = uid == 0;
  if (to_root && syscall(SYS_setresuid, same, uid, same) != 0) std::abort();
  if (syscall(SYS_setresgid, same, gid, same) != 0) std::abort();
  if (!to_root && syscall(SYS_setresuid, same, uid, same) != 0) std::abort();
}

}  // namespace

bool can_be_other_users() {
  if (geteuid() == 0) return true;
  test::say_skipped("root");
  return false;
}

OtherUser::OtherUser(std::uint32_t uid, std::uint32_t gid) { become(uid, gid); }

OtherUser::~OtherUser() { become(0, 0); }

}  // namespace resourced::e2e
