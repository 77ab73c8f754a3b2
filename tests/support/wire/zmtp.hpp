// The bytes of ZMTP 3.0 (ZeroMQ RFC 23) with the NULL mechanism, for a RawSocket that plays a peer with a
// handshake that libzmq would not send, or that stops halfway.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/raw_socket.hpp"

namespace resourced::wire {

using ZmtpProperties = std::vector<std::pair<std::string, std::string>>;

/// The greeting of 64 bytes.
[[nodiscard]] std::string zmtp_greeting();
/// The command READY. Each name and value, and the whole command, must have fewer than 256 bytes.
[[nodiscard]] std::string zmtp_ready(const ZmtpProperties& properties);
/// Greeting and READY of a DEALER, which precede its first message.
[[nodiscard]] std::string zmtp_hello();
/// The last frame of a message, of fewer than 256 bytes.
[[nodiscard]] std::string zmtp_frame(std::string_view body);

/// Waits for the greeting and READY of the peer, which complete its part of the handshake.
void await_zmtp_hello(const RawSocket& socket);
/// Sends and receives the whole handshake.
void shake_hands(const RawSocket& socket, const ZmtpProperties& properties);

}  // namespace resourced::wire
