// The implementation of look-ups with getaddrinfo(3), see addresses.hpp.
#include "client/addresses.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>

#include "core/error.hpp"

namespace resourced::client {
namespace {

Address address_of(const addrinfo& info) {
  Address address;
  address.size = info.ai_addrlen;
  std::memcpy(&address.socket, info.ai_addr, info.ai_addrlen);
  std::array<char, NI_MAXHOST> host{};
  getnameinfo(info.ai_addr, info.ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  address.host = host.data();
  return address;
}

/// Looks up a host: only a numeric one if `only` is AI_NUMERICHOST, any if it is 0.
Addresses ask(const proto::Endpoint& endpoint, int only) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = only;
  addrinfo* found = nullptr;
  Addresses addresses;
  const int failure =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failure != 0) {
    addresses.failure = gai_strerror(failure);
    return addresses;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Address address = address_of(*info);
    // Skip repeats: a host in several lines of /etc/hosts may have an address twice.
    if (std::ranges::find(addresses.list, address.host, &Address::host) == addresses.list.end())
      addresses.list.push_back(std::move(address));
  }
  return addresses;
}

}  // namespace

LookUp look_up(const proto::Endpoint& endpoint) {
  if (Addresses addresses = ask(endpoint, AI_NUMERICHOST); addresses.failure.empty())
    return LookUp(std::move(addresses));
  try {
    return LookUp([endpoint] { return ask(endpoint, 0); });
  } catch (const Error& error) {
    throw Error(error.errnum(), fmt::format("{}: {}", endpoint.host, error.what()));
  }
}

}  // namespace resourced::client
