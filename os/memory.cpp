#include "os/memory.hpp"

#include <cstddef>

// Only the daemon is linked with jemalloc, and not where sanitizers have an allocator of their own.
extern "C" [[gnu::weak, gnu::visibility("default")]] int mallctl(const char* name, void* old,
                                                                 std::size_t* old_size, void* next,
                                                                 std::size_t next_size);

namespace resourced::os {

void give_back_memory() noexcept {
  // 4096 stands for all arenas.
  if (mallctl != nullptr) (void)mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace resourced::os
