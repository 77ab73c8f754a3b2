// SHA-256 digests, computed by libsodium: the first one of OpenSSL 3 would load its algorithms, in some
// milliseconds and 2 MiB.
#pragma once

#include <string>
#include <string_view>

namespace resourced::os {

/// Returns the digest of a text in 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view text);

}  // namespace resourced::os
