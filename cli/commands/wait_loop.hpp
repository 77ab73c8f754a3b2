// Lets a connection work until a command is done, or the user ends it.
#pragma once

#include <functional>

#include "client/connection.hpp"

namespace resourced::cli::commands {

/// Returns true when done() holds, false when SIGINT or SIGTERM came before. What a handler throws leaves
/// through here.
bool work_until(client::Connection& connection, const std::function<bool()>& done);

}  // namespace resourced::cli::commands
