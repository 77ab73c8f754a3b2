// The speed of this machine, to scale bounds of time. The source is compiled with optimization, unlike other
// tests.
#pragma once

namespace resourced::e2e::loop_tests {

/// The milliseconds to allocate and free some 20,000 cells of memory; the shortest of several tries.
[[nodiscard]] double yardstick();
/// The milliseconds that it takes to copy 2 MiB into memory that is new from the kernel, at best. A daemon
/// that reads a large message does that, and a virtual machine may be slow at it and at nothing else.
[[nodiscard]] double yardstick_of_new_memory();

}  // namespace resourced::e2e::loop_tests
