// Lets a look-up of the host held.test by a program that is started with this library in LD_PRELOAD last as
// long as the file that $HELD_NAMES names is there, as with a server of names that does not answer.
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

// The build hides names, and this one has to replace that of the C library.
#pragma GCC visibility push(default)
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  const char* const path = std::getenv("HELD_NAMES");
  constexpr useconds_t pause = 1000;
  // A numeric host is read, and not looked up.
  const bool looks_up = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (looks_up && path != nullptr && host != nullptr && std::string_view(host) == "held.test") {
    while (access(path, F_OK) == 0) usleep(pause);
  }
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, found);
}
#pragma GCC visibility pop
