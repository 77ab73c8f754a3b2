// The text of a batch as it is in etcd. etcd's time for a transaction grows with its bytes, and the records
// of a batch are much alike: a text of some kilobytes is compressed as a block of LZ4 behind the line `lz4
// BYTES`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace resourced::daemon::log::etcd {

/// Leaves a short text as it is, so that etcdctl can show it, one that would hold the loop too long, and one
/// that does not get smaller.
[[nodiscard]] std::string pack(std::string text);

/// The bytes of the text that this claims to be, without unpacking it.
[[nodiscard]] std::size_t unpacked_size(std::string_view packed);

/// Nothing if it is broken, or claims to be larger than what pack() takes.
[[nodiscard]] std::optional<std::string> unpack(std::string_view packed);

}  // namespace resourced::daemon::log::etcd
