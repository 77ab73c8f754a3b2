// SERVICE.ping, by which clients measure the way to a service: the answer says what the request said, and how
// it came. Keys: those that `flux ping` of Flux 0.88 reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/message.hpp"

namespace resourced::proto {

inline constexpr std::size_t max_ping_values = 1024;

/// The keys of the request's object, and `route` (its hops from the origin on, the last one this service,
/// each cut to 8 characters, with `!` between them), `userid` and `rolemask` of the request as stamped, and
/// `rank`: 0, as the one daemon stands where rank 0 of an instance would. These four replace keys of the
/// request with the same name. `connection` tells the sender's connection from others. A request without
/// payload has no keys of its own. Error EPROTO if the payload is not an object, EMSGSIZE if it may have more
/// than `max_ping_values` values: to read 64 KiB of empty arrays takes milliseconds.
[[nodiscard]] std::string answer_ping(const Message& request, std::uint64_t connection);

}  // namespace resourced::proto
