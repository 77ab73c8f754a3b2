// Text from outside on a terminal: whoever may give a reason for a drain must not move the cursor of those
// who read it, nor add lines to their tables.
#pragma once

#include <string>
#include <string_view>

namespace resourced::cli {

/// UTF-8 text with its control characters (C0, DEL, C1) written as JSON writes them, `\n` or `\u001b`. All
/// else stays as it is, the backslash too.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace resourced::cli
