// SHA-256 digests, computed by OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace resourced::os {

/// Returns the digest of a text in 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view text);

}  // namespace resourced::os
