// Looks up the addresses of a host, for connections that are tried one after the other.
#pragma once

#include <string>
#include <vector>

#include <sys/socket.h>

#include "client/background.hpp"
#include "proto/uri.hpp"

namespace resourced::client {

struct Address {
  /// The numeric address; IPv6 without brackets.
  std::string host;
  sockaddr_storage socket{};
  socklen_t size = 0;
};

/// Addresses in the order in which to try them (getaddrinfo(3)).
struct Addresses {
  std::vector<Address> list;
  /// The reason why there are no addresses; otherwise empty.
  std::string failure;
};

using LookUp = Background<Addresses>;

/// Starts to look up the host of a tcp: endpoint. A numeric one is there at once; that of a name has a
/// thread, because a name server may take long to answer. Throws Error if no descriptors or threads are left.
[[nodiscard]] LookUp look_up(const proto::Endpoint& endpoint);

}  // namespace resourced::client
