// The ZAP handler (ZeroMQ RFC 27) for CURVE: libzmq asks it about each client's public key, after the client
// has proven that it has the secret key. One handler serves all sockets of a context. The caller decides
// which keys are allowed (ZapAllow).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace zmq {
class context_t;
}

namespace resourced::daemon::transport {

/// The ZAP domain that the daemon's sockets name in their requests.
inline constexpr std::string_view zap_domain = "resourced";

/// Returns whether clients with this public key (Z85) are allowed. May be called at any time from the loop.
using ZapAllow = std::function<bool(std::string_view public_key)>;

struct ZapAnswer {
  /// The parts of the reply; empty for a malformed request, which cannot be answered.
  std::vector<std::string> parts;
  /// Reason of the refusal for the log; empty if the client is let in.
  std::string refusal;
};

/// Answers one request as a ROUTER got it, routes included: 200 with the client's key as its User-Id, 400 for
/// a key that is not allowed, 500 for anything but a request of version 1.0 about CURVE in zap_domain.
[[nodiscard]] ZapAnswer answer_zap(const std::vector<std::string_view>& request, const ZapAllow& allow);

class ZapHandler {
 public:
  /// Throws Error if the context has a handler already. `refused` is called for each client that is refused.
  /// The context must outlive the handler, and the handler the sockets that depend on it: without a handler
  /// libzmq accepts every client.
  ZapHandler(boost::asio::io_context& loop, zmq::context_t& context, ZapAllow allow,
             std::function<void(const std::string& why)> refused);
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;
  ZapHandler(ZapHandler&&) = delete;
  ZapHandler& operator=(ZapHandler&&) = delete;

  /// Returns the number of refused requests.
  [[nodiscard]] std::uint64_t refused() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace resourced::daemon::transport
