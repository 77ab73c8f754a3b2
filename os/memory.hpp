// The memory that jemalloc, the allocator of the daemon, keeps for later.
#pragma once

namespace resourced::os {

/// Gives the system the memory that was freed. It takes some milliseconds, so call it after much was freed.
/// Programs without jemalloc keep their memory.
void give_back_memory() noexcept;

}  // namespace resourced::os
