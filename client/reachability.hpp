// Why an attempt to connect failed: ZeroMQ says that it did, but not why.
#pragma once

#include <string>

#include "core/error.hpp"

namespace resourced::client {

/// Tries the address with a plain socket, for at most a fraction of a second (a name look-up may take
/// longer), and returns `cannot reach the daemon at URI: WHY` with the errno that it got.
[[nodiscard]] Error explain_failure(const std::string& uri);

/// The same for an attempt that got no answer in time.
[[nodiscard]] Error explain_timeout(const std::string& uri);

}  // namespace resourced::client
