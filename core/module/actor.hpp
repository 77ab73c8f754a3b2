// The cause of an event outside the daemon: the user or program that asked for a change, or the node that
// reported one. RFC 44 has no such field.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <variant>

namespace resourced::module {

/// A user whose id the kernel reports for the connection, or the broker of a Flux instance for the request.
struct ByUser {
  std::uint32_t id = 0;
  auto operator<=>(const ByUser&) const = default;
};

/// A client with a CURVE key, by the name that the configuration gives it.
struct ByKey {
  std::string name;
  auto operator<=>(const ByKey&) const = default;
};

/// A client without a key on a connection that proves no identity, by the address of its host.
struct ByAddress {
  std::string name;
  auto operator<=>(const ByAddress&) const = default;
};

/// The agent of a node.
struct ByHost {
  std::string name;
  auto operator<=>(const ByHost&) const = default;
};

/// A signal to the daemon, as `HUP`.
struct BySignal {
  std::string name;
  auto operator<=>(const BySignal&) const = default;
};

using Actor = std::variant<ByUser, ByKey, ByAddress, ByHost, BySignal>;

}  // namespace resourced::module
