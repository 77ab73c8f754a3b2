// Many consumers of the journal in a process of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace resourced::bench {

/// Opens `count` journals and prints "ready" once each has read the past. Prints "done" when each has read
/// `events` further events, all of the same bytes; throws if they do not come.
void consume(const std::string& uri, std::size_t count, std::uint64_t events);

}  // namespace resourced::bench
