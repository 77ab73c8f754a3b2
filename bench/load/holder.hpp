// A scheduler in a process of its own, which can be stopped while it holds the resources.
#pragma once

#include <string>

namespace resourced::bench {

/// Acquires everything with a lease of 5 s, prints "ready", and sends nothing from then on, until it is
/// killed.
[[noreturn]] void hold(const std::string& uri);

}  // namespace resourced::bench
