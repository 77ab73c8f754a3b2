// Bytes as text in base64 (RFC 4648, section 4), which etcd and Flux's KVS have for keys and values, and HTTP
// for a password.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resourced::text {

[[nodiscard]] std::string encode_base64(std::string_view bytes);

/// Returns the bytes of a text as encode_base64() writes it; nothing for any other text.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace resourced::text
