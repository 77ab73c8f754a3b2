// The text of a batch as it is in etcd. etcd's time for a transaction grows with its bytes, and the records
// of a batch are much alike: a text of some kilobytes is compressed as a block of LZ4 behind the line `lz4
// BYTES`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace resourced::daemon::log::etcd {

/// Packs a text. Leaves it as it is if it is short, so that etcdctl can show it, if it would hold the loop
/// too long, or if it does not get smaller.
[[nodiscard]] std::string pack(std::string text);

/// The size that a packed text claims to have, in bytes, without unpacking it.
[[nodiscard]] std::size_t unpacked_size(std::string_view packed);

/// Unpacks a text; nothing if it is broken, or claims to be larger than a text that pack() packs.
[[nodiscard]] std::optional<std::string> unpack(std::string_view packed);

}  // namespace resourced::daemon::log::etcd
