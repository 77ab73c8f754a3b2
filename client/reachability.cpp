// A plain connection attempt to find an errno, see reachability.hpp.
#include "client/reachability.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/uri.hpp"

namespace resourced::client {

namespace {

constexpr int patience_ms = 250;

Error unreachable(const std::string& uri, int errnum, std::string_view why) {
  return {errnum, fmt::format("cannot reach the daemon at {}: {}", uri, why)};
}

/// 0, or the errno of the attempt.
int try_connect(int family, const sockaddr* address, socklen_t size) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int errnum = connect(fd, address, size) == 0 ? 0 : errno;
  if (errnum == EINPROGRESS) {
    pollfd waiting{fd, POLLOUT, 0};
    errnum = ETIMEDOUT;
    if (poll(&waiting, 1, patience_ms) == 1) {
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
  return try_connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

struct Addresses {
  /// An error of getaddrinfo(3), or 0.
  int failure = 0;
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list{nullptr, &freeaddrinfo};
};

Addresses look_up(const proto::Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  Addresses addresses;
  addresses.failure =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (addresses.failure == 0) addresses.list.reset(found);
  return addresses;
}

/// Nothing if the host could not be looked up, which `why` then explains. A server of names may not answer
/// for long, so the look-up has a thread, which may outlive this call.
std::optional<int> try_host(const proto::Endpoint& endpoint, std::string& why) {
  auto promise = std::make_shared<std::promise<Addresses>>();
  std::future<Addresses> answer = promise->get_future();
  try {
    std::thread([promise, endpoint] { promise->set_value(look_up(endpoint)); }).detach();
  } catch (const std::system_error& error) {
    why = fmt::format("{}: {}", endpoint.host, error.what());
    return std::nullopt;
  }
  if (answer.wait_for(std::chrono::milliseconds(patience_ms)) != std::future_status::ready) {
    why = fmt::format("{}: the server of names has not answered yet", endpoint.host);
    return std::nullopt;
  }
  const Addresses addresses = answer.get();
  if (addresses.failure != 0) {
    why = fmt::format("{}: {}", endpoint.host, gai_strerror(addresses.failure));
    return std::nullopt;
  }
  return try_connect(addresses.list->ai_family, addresses.list->ai_addr, addresses.list->ai_addrlen);
}

/// Nothing if a plain socket can connect.
std::optional<Error> plain_failure(const std::string& uri) {
  const auto endpoint = proto::parse_endpoint(uri, proto::EndpointUse::connect);
  int errnum = 0;
  if (endpoint.scheme == proto::Scheme::tcp) {
    std::string why;
    const auto result = try_host(endpoint, why);
    if (!result) return unreachable(uri, EHOSTUNREACH, why);
    errnum = *result;
  } else {
    errnum = try_path(endpoint.path);
  }
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
