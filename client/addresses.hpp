// Looks up the addresses of a host, for connections that are tried one after the other.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <sys/socket.h>

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

/// The look-up of a host. It is complete at once for a numeric one. Because a name server may take long to
/// answer, the look-up of a name has a thread, which may outlive this object.
class LookUp {
 public:
  /// Starts to look up the host of a tcp: endpoint. Throws Error if no descriptors or threads are left.
  explicit LookUp(const proto::Endpoint& endpoint);

  /// Returns a descriptor that is readable once the look-up is complete.
  [[nodiscard]] int fd() const noexcept;
  /// Whether the look-up is complete; waits for it for up to this time.
  [[nodiscard]] bool is_over(int milliseconds = 0) const;
  /// Returns the result. May be called once, after is_over() is true.
  [[nodiscard]] Addresses take() { return answer_.get(); }

 private:
  class End;
  std::shared_ptr<End> end_;
  std::future<Addresses> answer_;
};

}  // namespace resourced::client
