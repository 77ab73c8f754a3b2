// Why a daemon cannot be reached, also while the server of names does not answer.
#include "client/reachability.hpp"

#include <atomic>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <netdb.h>

#include "core/error.hpp"

namespace {

/// Look-ups do not end while it is true.
std::atomic<bool> is_silent = false;

}  // namespace

// Takes the place of the C library's for this program.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  is_silent.wait(true);
  using Function = decltype(&getaddrinfo);
  const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(node, service, hints, found);
}

namespace resourced::client {
namespace {

TEST_CASE("nobody waits for a server of names that does not answer") {
  is_silent = true;
  const Error error = explain(ConnectFailure::unreachable, "tcp://localhost:1", "");
  CHECK(error.errnum() == EHOSTUNREACH);
  CHECK(std::string(error.what()) ==
        "cannot reach the daemon at tcp://localhost:1: localhost: the server of names has not answered yet");
  is_silent = false;
  is_silent.notify_all();
}

TEST_CASE("a name that there is not is told, and a port where nobody listens") {
  const Error unknown = explain(ConnectFailure::unreachable, "tcp://no-such-host.invalid:1", "");
  CHECK(unknown.errnum() == EHOSTUNREACH);
  CHECK(std::string(unknown.what())
            .starts_with("cannot reach the daemon at tcp://no-such-host.invalid:1: no-such-host.invalid: "));
  CHECK(explain(ConnectFailure::unreachable, "tcp://127.0.0.1:1", "").errnum() == ECONNREFUSED);
}

}  // namespace
}  // namespace resourced::client
