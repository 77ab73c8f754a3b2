// Memory that the allocator keeps for later.
#pragma once

namespace resourced::os {

/// Returns memory that was freed to the system: to be called after much of it was, as it takes some
/// milliseconds. The allocator, jemalloc or the C library's, keeps freed memory otherwise.
void give_back_memory() noexcept;

}  // namespace resourced::os
