// Finds an errno by a plain connection attempt, see reachability.hpp.
#include "client/reachability.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/addresses.hpp"
#include "proto/uri.hpp"

namespace resourced::client {

namespace {

constexpr int patience_ms = 250;

Error unreachable(const std::string& uri, int errnum, std::string_view why) {
  return {errnum, fmt::format("cannot reach the daemon at {}: {}", uri, why)};
}

/// Tries to connect. Returns 0, or the errno of the attempt.
int try_connect(int family, const sockaddr* address, socklen_t size, int patience) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int errnum = connect(fd, address, size) == 0 ? 0 : errno;
  if (errnum == EINPROGRESS) {
    pollfd waiting{fd, POLLOUT, 0};
    errnum = ETIMEDOUT;
    if (poll(&waiting, 1, patience) == 1) {
      socklen_t length = sizeof(errnum);
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &length);
    }
  }
  close(fd);
  return errnum;
}

int try_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  return try_connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address), patience_ms);
}

Error host_failure(const std::string& uri, const Addresses& addresses, const std::vector<int>& errnums) {
  if (errnums.size() == 1) return unreachable(uri, errnums[0], std::strerror(errnums[0]));
  std::string why;
  for (std::size_t i = 0; i < errnums.size(); ++i) {
    why += fmt::format("{}{}: {}", i == 0 ? "" : "; ", addresses.list[i].host, std::strerror(errnums[i]));
  }
  return unreachable(uri, errnums[0], why);
}

std::optional<Error> try_host(const std::string& uri, const proto::Endpoint& endpoint) {
  const auto fail = [&](std::string_view why) {
    return unreachable(uri, EHOSTUNREACH, fmt::format("{}: {}", endpoint.host, why));
  };
  std::optional<LookUp> found;
  try {
    found = look_up(endpoint);
  } catch (const Error& error) {
    return unreachable(uri, error.errnum(), error.what());
  }
  if (!found->is_over(patience_ms)) return fail("the server of names has not answered yet");
  const Addresses addresses = found->take();
  if (!addresses.failure.empty()) return fail(addresses.failure);
  const int patience = std::max(patience_ms / static_cast<int>(addresses.list.size()), 1);
  std::vector<int> errnums;
  for (const Address& address : addresses.list) {
    const auto* const socket = reinterpret_cast<const sockaddr*>(&address.socket);
    errnums.push_back(try_connect(address.socket.ss_family, socket, address.size, patience));
    if (errnums.back() == 0) return std::nullopt;
  }
  return host_failure(uri, addresses, errnums);
}

/// Returns the error of a plain socket; nothing if it can connect.
std::optional<Error> plain_failure(const std::string& uri) {
  const auto endpoint = proto::parse_endpoint(uri, proto::EndpointUse::connect);
  if (endpoint.scheme == proto::Scheme::tcp) return try_host(uri, endpoint);
  const int errnum = try_path(endpoint.path);
  if (errnum == 0) return std::nullopt;
  return unreachable(uri, errnum, std::strerror(errnum));
}

Error explain_end(const std::string& uri, const std::string& key_file) {
  if (auto error = plain_failure(uri)) return *error;
  std::string why = "the program that listens there ended the connection";
  if (!key_file.empty()) {
    why += fmt::format("; its key is not the server-key in {}, or it has no key", key_file);
  } else if (uri.starts_with("tcp:")) {
    why += "; it may require a key";
  }
  return unreachable(uri, ECONNREFUSED, why);
}

}  // namespace

bool is_final(ConnectFailure failure) noexcept {
  return failure == ConnectFailure::other_mechanism || failure == ConnectFailure::key_refused ||
         failure == ConnectFailure::no_role;
}

bool may_take_long(ConnectFailure failure, const std::string& uri) noexcept {
  return (failure == ConnectFailure::unreachable || failure == ConnectFailure::ended) &&
         uri.starts_with("tcp:");
}

Error explain(ConnectFailure failure, const std::string& uri, const std::string& key_file) {
  switch (failure) {
    case ConnectFailure::unreachable:
    case ConnectFailure::ended:
      return explain_end(uri, key_file);
    case ConnectFailure::timed_out:
      return unreachable(uri, ETIMEDOUT, "no answer");
    case ConnectFailure::bad_handshake:
      return unreachable(uri, EPROTO, "the program that listens there does not speak the daemon's protocol");
    case ConnectFailure::other_mechanism:
      if (key_file.empty()) return unreachable(uri, EACCES, "it requires a key");
      return unreachable(
          uri, EPROTO,
          fmt::format("it has no key, so it cannot prove to be the daemon that {} trusts", key_file));
    case ConnectFailure::key_refused:
      return unreachable(uri, EACCES, fmt::format("the daemon refuses the key in {}", key_file));
    case ConnectFailure::no_role:
      return unreachable(uri, EPERM, "this user has no role there");
    case ConnectFailure::too_many:
      return unreachable(uri, EBUSY, "this user has too many connections there");
  }
  return unreachable(uri, EPROTO, "unknown failure");
}

}  // namespace resourced::client
