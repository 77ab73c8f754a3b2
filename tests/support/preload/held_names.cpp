// Holds each look-up of the host held.test in a program that is started with this library in LD_PRELOAD,
// while the file that $HELD_NAMES names exists, as if the name server did not answer.
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

// The build hides names, but this one must replace that of the C library.
#pragma GCC visibility push(default)
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  const char* const path = std::getenv("HELD_NAMES");
  constexpr useconds_t pause = 1000;
  // A numeric host is not looked up.
  const bool looks_up = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (looks_up && path != nullptr && host != nullptr && std::string_view(host) == "held.test") {
    while (access(path, F_OK) == 0) usleep(pause);
  }
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, found);
}
#pragma GCC visibility pop
