// Names of clients and of their requests (RFC 6), for a daemon: what a request waits for stands under its
// key.
#pragma once

#include <cstdint>

namespace resourced::proto {

/// One connection, named by its transport. Never used again for another one.
enum class ClientId : std::uint64_t {};

/// A matchtag is unique per client only. 0 is a matchtag like any other: a client that has no need to tell
/// responses apart may have one such request pending.
struct RequestKey {
  ClientId client{};
  std::uint32_t matchtag = 0;

  bool operator==(const RequestKey&) const = default;
  bool operator<(const RequestKey& other) const noexcept {
    return client != other.client ? client < other.client : matchtag < other.matchtag;
  }
};

}  // namespace resourced::proto
