// resource-agent as a function: probes the node, and then keeps it online until SIGTERM or SIGINT.
#pragma once

#include <iosfwd>

namespace resourced::agent {

/// Returns the exit status: 0 done, 1 failed (one line on `err` says what and why), 2 wrong usage. The log
/// goes to `err`.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace resourced::agent
