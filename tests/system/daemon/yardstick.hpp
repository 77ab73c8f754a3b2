// How fast this machine is, for bounds of time. Its source is compiled with optimization, unlike other tests.
#pragma once

namespace resourced::e2e::loop_tests {

/// The milliseconds that it takes to make and to free some 20,000 cells of memory, at best.
[[nodiscard]] double yardstick();

}  // namespace resourced::e2e::loop_tests
