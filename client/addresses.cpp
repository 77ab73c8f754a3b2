// The implementation of look-ups with getaddrinfo(3), see addresses.hpp.
#include "client/addresses.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/error.hpp"
#include "os/thread.hpp"

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

/// The event that signals the end of a look-up.
class LookUp::End {
 public:
  End() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ >= 0) return;
    const int errnum = errno;
    throw Error(errnum, fmt::format("eventfd: {}", std::strerror(errnum)));
  }
  ~End() { close(event_); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void signal() const { eventfd_write(event_, 1); }
  [[nodiscard]] int fd() const noexcept { return event_; }

 private:
  int event_;
};

LookUp::LookUp(const proto::Endpoint& endpoint) : end_(std::make_shared<End>()) {
  const auto promise = std::make_shared<std::promise<Addresses>>();
  answer_ = promise->get_future();
  if (Addresses addresses = ask(endpoint, AI_NUMERICHOST); addresses.failure.empty()) {
    promise->set_value(std::move(addresses));
    end_->signal();
    return;
  }
  try {
    os::start_thread([promise, end = end_, endpoint] {
      promise->set_value(ask(endpoint, 0));
      end->signal();
    });
  } catch (const std::system_error& error) {
    throw Error(error.code().value(), fmt::format("{}: {}", endpoint.host, error.what()));
  }
}

int LookUp::fd() const noexcept { return end_->fd(); }

bool LookUp::is_over(int milliseconds) const {
  return answer_.wait_for(std::chrono::milliseconds(milliseconds)) == std::future_status::ready;
}

}  // namespace resourced::client
