// Who may come in with CURVE: the handler that libzmq asks about each client's public key (ZAP, ZeroMQ RFC
// 27), once it has seen proof of the secret one. One handler serves all sockets of a context. It knows no
// names and roles: whether a key is known is for its owner to say.
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

/// The domain that the daemon's sockets name in their questions.
inline constexpr std::string_view zap_domain = "resourced";

/// Whether the holder of this public key (Z85) may come in. May be called at any time from the loop.
using ZapAllow = std::function<bool(std::string_view public_key)>;

struct ZapAnswer {
  /// What goes back; empty for a message that nobody can be told anything about.
  std::vector<std::string> parts;
  /// Why the client is refused, for the log; empty if it is let in.
  std::string refusal;
};

/// Answers one request as a ROUTER got it, routes included: 200 with the client's key as its User-Id, 400 for
/// a key that is not allowed, 500 for what is not a request of version 1.0 about CURVE in our domain.
[[nodiscard]] ZapAnswer answer_zap(const std::vector<std::string_view>& request, const ZapAllow& allow);

class ZapHandler {
 public:
  /// Throws Error if the context has a handler already. `refused` hears of each client that is turned away.
  /// The context must outlive the handler, and the handler the sockets that depend on it: without one, libzmq
  /// lets everybody in.
  ZapHandler(boost::asio::io_context& loop, zmq::context_t& context, ZapAllow allow,
             std::function<void(const std::string& why)> refused);
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;
  ZapHandler(ZapHandler&&) = delete;
  ZapHandler& operator=(ZapHandler&&) = delete;

  /// How many clients have been turned away.
  [[nodiscard]] std::uint64_t refused() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace resourced::daemon::transport
