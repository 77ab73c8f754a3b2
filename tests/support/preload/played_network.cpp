// Simulates the network for a program that is started with this library in LD_PRELOAD: the host
// played.example has the numeric addresses in $PLAYED_ADDRESSES, separated by commas, and with
// $PLAYED_WITHOUT_IPV6 the kernel has no IPv6.
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

namespace {

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The build hides names, but these must replace those of the C library.
#pragma GCC visibility push(default)
extern "C" {

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto real = next<decltype(&getaddrinfo)>("getaddrinfo");
  const char* const played = std::getenv("PLAYED_ADDRESSES");
  if (played == nullptr || node == nullptr || std::string(node) != "played.example")
    return real(node, service, hints, found);
  if ((hints->ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
  std::istringstream addresses(played);
  addrinfo** end = found;
  for (std::string address; std::getline(addresses, address, ',');) {
    if (const int failure = real(address.c_str(), service, hints, end); failure != 0) return failure;
    // The lists can be joined, as freeaddrinfo() frees the members of a list one by one.
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  return 0;
}

int socket(int family, int type, int protocol) noexcept {
  static const auto real = next<decltype(&socket)>("socket");
  if (family == AF_INET6 && std::getenv("PLAYED_WITHOUT_IPV6") != nullptr) {
    errno = EAFNOSUPPORT;
    return -1;
  }
  return real(family, type, protocol);
}

}  // extern "C"
#pragma GCC visibility pop
